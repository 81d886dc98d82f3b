"""Claims for a device, their pods, and their allocation."""

from typing import Any

from simcluster.controllers.devices.claim_release import CLAIM_FINALIZER
from simcluster.kinds.resources import PODS, RESOURCE_CLAIMS, Resource
from simcluster.tests.support.manual_cluster import ManualCluster

Json = dict[str, Any]

DEVICES: Json = {
    "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}],
}


def add_claim(cluster: ManualCluster, name: str = "shared") -> None:
    cluster.create(RESOURCE_CLAIMS, {"metadata": {"name": name}, "spec": {"devices": DEVICES}})


def add_pod(cluster: ManualCluster, name: str = "p", **source: str) -> Json:
    source = source or {"resourceClaimTemplateName": "one-gpu"}
    spec = {
        "containers": [{"name": "c", "image": "x:1"}],
        "resourceClaims": [{"name": "gpu", **source}],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
    }
    cluster.create(PODS, {"metadata": {"name": name}, "spec": spec})
    cluster.settle()
    return cluster.get(PODS, name)


def allocate(
    cluster: ManualCluster, claim: Json, *pods: str, device: str = "gpu-0", **result: Any
) -> None:
    """Allocate a device of node-0 and reserve it for pods, as a scheduler does."""
    name = claim["metadata"]["name"]
    entry = {"request": "gpu", "driver": "d", "pool": "node-0", "device": device, **result}
    field = {"key": "metadata.name", "operator": "In", "values": ["node-0"]}
    selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    consumers = [
        {
            "resource": "pods",
            "name": pod,
            "uid": cluster.get(PODS, pod)["metadata"]["uid"],
        }
        for pod in pods
    ]
    cluster.change(
        RESOURCE_CLAIMS, name, lambda obj: obj["metadata"].update(finalizers=[CLAIM_FINALIZER])
    )
    status: Json = {"allocation": {"devices": {"results": [entry]}, "nodeSelector": selector}}
    if consumers:
        status["reservedFor"] = consumers
    set_status(cluster, RESOURCE_CLAIMS, name, status)


def set_status(cluster: ManualCluster, resource: Resource, name: str, status: Json) -> None:
    stored = cluster.find(resource, name)
    assert stored is not None
    cluster.registry.replace_status(resource, stored, {**stored.copy_of_obj(), "status": status})
    cluster.settle()
