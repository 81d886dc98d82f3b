"""Requests of the contract tests: small objects of each kind, and their paths."""

import copy
from typing import Any

from simcluster.tests.support.api_client import ApiClient, Reply

Json = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
SERVICES = "/api/v1/namespaces/default/services"
NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
STATEFUL_SETS = "/apis/apps/v1/namespaces/default/statefulsets"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
STORAGE_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
EVENTS = "/api/v1/namespaces/default/events"
EVENTS_V1 = "/apis/events.k8s.io/v1/namespaces/default/events"

TEMPLATE: Json = {
    "metadata": {"labels": {"app": "w"}},
    "spec": {"containers": [{"name": "c", "image": "x:1"}]},
}


def deployment(name: str = "w", **spec: Any) -> Json:
    """A Deployment of one container."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": "w"}},
            "template": copy.deepcopy(TEMPLATE),
            **spec,
        },
    }


async def apply(
    api: ApiClient, path: str, body: Json, manager: str = "m", force: bool = False
) -> Reply:
    """Server-side apply."""
    query = f"?fieldManager={manager}" + ("&force=true" if force else "")
    return await api.request("PATCH", path + query, body, "application/apply-patch+yaml")
