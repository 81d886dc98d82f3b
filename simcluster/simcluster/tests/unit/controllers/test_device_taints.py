"""Eviction of pods by the NoExecute taints of their devices."""

from typing import Any

import pytest

from simcluster.kinds.resources import EVENTS, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from simcluster.tests.support.manual_cluster import ManualCluster
from simcluster.tests.unit.controllers.claims import add_claim, add_pod, allocate

Json = dict[str, Any]


def publish(cluster: ManualCluster, *taints: Json, name: str = "s", generation: int = 1) -> None:
    """Publish the device gpu-0 of node-0 with taints that were added now."""
    now = cluster.registry.clock.now()
    tainted = [{"key": "broken", "timeAdded": now, **taint} for taint in taints]
    spec = {
        "driver": "d",
        "pool": {"name": "node-0", "generation": generation, "resourceSliceCount": 1},
        "nodeName": "node-0",
        "devices": [{"name": "gpu-0", "taints": tainted}, {"name": "gpu-1"}],
    }
    cluster.create(RESOURCE_SLICES, {"metadata": {"name": name}, "spec": spec})
    cluster.settle()


def running_with_device(**result: Any) -> ManualCluster:
    """A pod that runs on node-0 with a claim; it is gone as soon as it is deleted."""
    cluster = ManualCluster(binds=False)
    add_claim(cluster)
    add_pod(cluster, resourceClaimName="shared")
    allocate(cluster, cluster.get(RESOURCE_CLAIMS, "shared"), "p", **result)
    cluster.bind("p", "node-0")
    assert cluster.get(PODS, "p")["status"]["phase"] == "Running"
    return cluster


def reasons(cluster: ManualCluster) -> list[str]:
    return [f"{event['reason']}: {event['message']}" for event in cluster.all(EVENTS)]


def test_a_device_that_gets_a_no_execute_taint_loses_its_pod() -> None:
    cluster = running_with_device()
    publish(cluster, {"effect": "NoExecute"})
    assert cluster.names(PODS) == []
    assert reasons(cluster) == ["DeviceTaintManagerEviction: Marking for deletion"]


def test_an_evicted_pod_says_why_until_its_finalizer_is_gone() -> None:
    cluster = running_with_device()
    cluster.change(PODS, "p", lambda pod: pod["metadata"].update(finalizers=["example.com/hold"]))
    publish(cluster, {"effect": "NoExecute"})
    conditions = cluster.get(PODS, "p")["status"]["conditions"]
    [condition] = [found for found in conditions if found["type"] == "DisruptionTarget"]
    assert condition["reason"] == "DeletionByDeviceTaintManager"


@pytest.mark.parametrize(
    ("device", "taint"),
    [
        ("gpu-0", {"effect": "NoSchedule"}),
        ("gpu-1", {"effect": "NoExecute"}),
    ],
)
def test_other_effects_and_taints_of_other_devices_leave_a_pod_alone(
    device: str, taint: Json
) -> None:
    cluster = running_with_device(device=device)
    publish(cluster, taint)
    assert cluster.names(PODS) == ["p"]


@pytest.mark.parametrize(
    ("toleration", "stays_s"),
    [
        ({"operator": "Exists", "effect": "NoExecute"}, None),
        ({"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}, 30),
        ({"operator": "Exists"}, 0),
        ({"key": "other", "operator": "Exists", "effect": "NoExecute"}, 0),
    ],
)
def test_a_pod_stays_as_long_as_its_claim_tolerates_the_taint(
    toleration: Json, stays_s: float | None
) -> None:
    """A toleration counts only if it names the effect."""
    cluster = running_with_device(tolerations=[toleration])
    publish(cluster, {"effect": "NoExecute"})
    if stays_s:
        cluster.pass_time(stays_s - 1)
    assert cluster.names(PODS) == ([] if stays_s == 0 else ["p"])
    cluster.pass_time(2)
    assert cluster.names(PODS) == (["p"] if stays_s is None else [])


def test_a_newer_generation_without_the_taint_cancels_the_eviction() -> None:
    tolerated = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
    cluster = running_with_device(tolerations=[tolerated])
    publish(cluster, {"effect": "NoExecute"})
    publish(cluster, name="t", generation=2)
    cluster.pass_time(60)
    assert cluster.names(PODS) == ["p"]


def test_a_pod_that_comes_to_a_tainted_device_is_evicted() -> None:
    cluster = ManualCluster(binds=False)
    publish(cluster, {"effect": "NoExecute"})
    add_claim(cluster)
    add_pod(cluster, resourceClaimName="shared")
    allocate(cluster, cluster.get(RESOURCE_CLAIMS, "shared"), "p")
    assert cluster.names(PODS) == ["p"]
    cluster.bind("p", "node-0")
    assert cluster.names(PODS) == []
