"""Pods whose claims come from a template get claims of their own when they are tried out."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.analysis.capacity import CapacityAnswer, capacity
from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.devices.shortage import Why
from stowage.analysis.what_if import Question, what_if
from stowage.analysis.workload_pods import InvalidManifest, objects_of_manifests
from stowage.api.objects.device import ResourceClaim, ResourceClaimTemplate
from tests.support.builders import ZONE, make_node
from tests.support.clusters import loaded_cluster
from tests.support.device_builders import make_class, make_slice, request

POD_SPEC = {
    "containers": [{"name": "c"}],
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
}


def template(*requests: dict[str, Any]) -> dict[str, Any]:
    wanted = list(requests) or [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
    spec = {"spec": {"devices": {"requests": wanted}}}
    return {"kind": "ResourceClaimTemplate", "metadata": {"name": "gpu"}, "spec": spec}


def deployment(replicas: int) -> dict[str, Any]:
    spec = {"replicas": replicas, "template": {"spec": POD_SPEC}}
    return {"kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def made(*items: dict[str, Any]) -> ClusterObjects:
    return objects_of_manifests(items, ClusterObjects())


def cluster_with(**devices: int) -> Any:
    """Nodes with that many devices."""
    nodes = [make_node(name, zone="z") for name in devices]
    slices = [
        make_slice(name, [f"d{index}" for index in range(number)])
        for name, number in devices.items()
    ]
    return loaded_cluster(*nodes, make_class(), *slices)


def count(objects: ClusterObjects, cluster: Any, limit: int = 100) -> CapacityAnswer:
    pod = objects.pods()[0]
    cluster.objects.add(objects.of_kind(ResourceClaimTemplate)[0])
    return capacity(cluster, pod, limit=limit, group_by=ZONE)


def test_each_pod_of_a_deployment_gets_a_claim_and_devices() -> None:
    objects = made(template(), deployment(3))
    cluster = cluster_with(n=2)
    answer = what_if(cluster, Question(objects=objects))
    assert [(each.pod, each.node) for each in answer.placed] == [
        ("default/web-0", "n"),
        ("default/web-1", "n"),
    ]
    (pending,) = answer.pending
    (shortage,) = pending.device_shortages
    assert (shortage.why, shortage.claim) == (Why.IN_USE, "default/web-2-gpu")
    claims = cluster.objects.of_kind(ResourceClaim)
    owners = {each.metadata.name: each.metadata.owner_references[0].name for each in claims}
    assert owners == {"web-0-gpu": "web-0", "web-1-gpu": "web-1", "web-2-gpu": "web-2"}


def test_capacity_is_limited_by_devices() -> None:
    answer = count(made(template(), deployment(1)), cluster_with(a=2, b=3, bare=0))
    assert (answer.fits, answer.per_node) == (5, {"a": 2, "b": 3})
    assert answer.message.startswith("0/3 nodes are available: 3 cannot allocate all claims.")
    found = {each.nodes: each.finding for each in answer.device_shortages}
    assert found == {
        ("a",): "0 of 2 devices are free",
        ("b",): "0 of 3 devices are free",
        ("bare",): "no devices",
    }


def test_capacity_counts_pods_with_several_devices() -> None:
    objects = made(template(request(count=2)), deployment(1))
    answer = count(objects, cluster_with(a=5, b=1))
    assert (answer.fits, answer.per_node) == (2, {"a": 2})


def test_a_limit_that_is_reached_names_no_shortage() -> None:
    answer = count(made(template(), deployment(1)), cluster_with(a=5), limit=2)
    assert (answer.fits, answer.is_limited, answer.device_shortages) == (2, True, ())


def test_requests_of_a_template_get_the_defaults_of_the_api_server() -> None:
    alternatives = {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "gpu"}]}
    objects = made(template(alternatives, {"name": "all", "exactly": {"allocationMode": "All"}}))
    (found,) = objects.of_kind(ResourceClaimTemplate)
    first, second = found.spec.spec.devices.requests
    (alternative,) = first.first_available
    assert (alternative.allocation_mode, alternative.count) == ("ExactCount", 1)
    assert second.exactly is not None
    assert (second.exactly.allocation_mode, second.exactly.count) == ("All", 0)


def test_a_template_that_is_missing_is_named() -> None:
    field = r"spec.resourceClaims\[0\].resourceClaimTemplateName: gpu"
    with pytest.raises(InvalidManifest, match=f"Pod web-0: {field} .expected a known"):
        made(deployment(1))
