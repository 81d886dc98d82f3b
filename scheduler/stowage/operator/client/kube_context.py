"""The name of a cluster as its user knows it: the context of the kubeconfig."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from kubernetes.aio import config as kubernetes_config_module

# The package has no type annotations inside: strict checking would refuse every call.
kubernetes_config: Any = kubernetes_config_module

IN_CLUSTER = "in-cluster"


def context_name(kubeconfig: Path | None) -> str:
    """The current context of a kubeconfig; None for kubectl's default ones.

    Without any kubeconfig it is `IN_CLUSTER`; with one that cannot be read the name of the file:
    whoever connects says what is wrong with it.
    """
    paths = kubernetes_config.KUBE_CONFIG_DEFAULT_LOCATION if kubeconfig is None else kubeconfig
    names = [each for each in str(paths).split(":") if Path(each).expanduser().is_file()]
    if kubeconfig is None and not names:
        return IN_CLUSTER
    try:
        _, current = kubernetes_config.list_kube_config_contexts(str(paths))
    except (
        kubernetes_config.ConfigException,
        OSError,
        yaml.YAMLError,
        AttributeError,
        TypeError,
        UnicodeDecodeError,
    ):
        return Path(names[0]).name if names else str(paths)
    return str(current["name"])
