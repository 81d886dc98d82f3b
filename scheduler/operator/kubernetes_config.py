"""What is used of the Kubernetes client: where the API server is, and how to prove who we are."""

from __future__ import annotations

from typing import Any

from scheduler.operator.imported_when_used import imported_when_used

_UNUSED = (
    *(
        f"kubernetes.{name}"
        for name in (
            "client",
            "config",
            "dynamic",
            "informer",
            "leaderelection",
            "stream",
            "utils",
            "watch",
        )
    ),
    *(f"kubernetes.aio.{name}" for name in ("dynamic", "leaderelection", "stream", "watch")),
)

with imported_when_used(_UNUSED):
    from kubernetes.aio import config as _config
    from kubernetes.aio.client.configuration import Configuration
    from kubernetes.aio.client.rest import RESTClientObject
    from kubernetes.aio.config import ConfigException

# Typed as a whole, but not inside: strict checking would refuse every call.
kubernetes_config: Any = _config

__all__ = ["ConfigException", "Configuration", "RESTClientObject", "kubernetes_config"]
