"""Deletes the objects of earlier tests from an API server that all tests share."""

import asyncio
from typing import Any

from simcluster.tests.support.api_client import MERGE, ApiClient
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

Json = dict[str, Any]

STOWAGE_OBJECTS = "?labelSelector=app.kubernetes.io/name=stowage"
"""Selects the objects of the manifests among the server's own."""
LISTS = (
    # Kinds that create pods are deleted before the pods.
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/statefulsets",
    "/apis/apps/v1/replicasets",
    "/apis/batch/v1/jobs",
    "/api/v1/replicationcontrollers",
    "/api/v1/pods",
    "/apis/policy/v1/poddisruptionbudgets",
    "/api/v1/configmaps",
    "/api/v1/services",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/apis/storage.k8s.io/v1/volumeattachments",
    "/apis/storage.k8s.io/v1/csistoragecapacities",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/resource.k8s.io/v1/resourceclaims",
    "/apis/resource.k8s.io/v1/resourceclaimtemplates",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/apis/coordination.k8s.io/v1/leases",
    "/apis/events.k8s.io/v1/events",
    f"/apis/rbac.authorization.k8s.io/v1/rolebindings{STOWAGE_OBJECTS}",
    f"/apis/rbac.authorization.k8s.io/v1/roles{STOWAGE_OBJECTS}",
    f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings{STOWAGE_OBJECTS}",
    f"/apis/rbac.authorization.k8s.io/v1/clusterroles{STOWAGE_OBJECTS}",
    "/api/v1/nodes",
)
"""The lists to empty. Namespaces stay: without a controller their deletion never completes."""
AT_ONCE = "gracePeriodSeconds=0&propagationPolicy=Background"


async def empty(api: ApiClient) -> None:
    """Delete all objects except those that the server creates itself.

    Raises:
        TimeoutError: some objects were not deleted in time.
    """
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        for path in LISTS:
            while found := await _found(api, path):
                await asyncio.gather(*(_delete(api, path, metadata) for metadata in found))


async def _found(api: ApiClient, path: str) -> list[Json]:
    """The metadata of the objects that the server did not create itself."""
    reply = await api.get(path)
    assert reply.status == 200, reply.text
    listed = [item["metadata"] for item in reply.body["items"]]
    return [metadata for metadata in listed if not _is_the_servers_own(metadata)]


def _is_the_servers_own(metadata: Json) -> bool:
    name, namespace = metadata["name"], metadata.get("namespace", "")
    if namespace.startswith("kube-"):
        # Such as leases of API servers; the lease of Stowage is there by default, too.
        return not name.startswith("stowage")
    return name.startswith("system-") or name in {"kubernetes", "kube-root-ca.crt"}


async def _delete(api: ApiClient, path: str, metadata: Json) -> None:
    collection, _, plural = path.partition("?")[0].rpartition("/")
    namespace = metadata.get("namespace")
    if namespace:
        collection = f"{collection}/namespaces/{namespace}"
    one = f"{collection}/{plural}/{metadata['name']}"
    if metadata.get("finalizers"):
        await api.patch(one, {"metadata": {"finalizers": None}}, MERGE)
    reply = await api.delete(f"{one}?{AT_ONCE}")
    assert reply.status in {200, 202, 404}, reply.text
