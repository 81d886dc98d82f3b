"""Scores of nodes by the alternatives that a claim gets there."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from stowage.api.objects.device import ResourceClaim
from stowage.api.objects.pod import Pod
from stowage.framework import CycleState
from stowage.state import ClusterCache, make_pod_info
from tests.support.builders import make_node
from tests.support.device_builders import (
    DRIVER,
    allocated,
    device,
    make_claim,
    make_class,
    make_slice,
    pod_with_claims,
)
from tests.unit.plugins.device_cluster import cluster_of, framework_for

OWN = f'device.attributes["{DRIVER}"]'
SMALL = f'{OWN}.model == "small"'
BIG = f'{OWN}.model == "big"'


def _either(*classes: str) -> dict[str, Any]:
    """A request for a device of the first of these classes that has one."""
    alternatives = [
        {"name": name, "deviceClassName": name, "allocationMode": "ExactCount", "count": 1}
        for name in classes
    ]
    return {"name": "r", "firstAvailable": alternatives}


def _got(claim: ResourceClaim, *chosen: str) -> ResourceClaim:
    """The allocated claim, whose devices are for these alternatives."""
    allocation = claim.status.allocation
    assert allocation is not None
    pairs = zip(allocation.devices.results, chosen, strict=True)
    results = tuple(replace(result, request=request) for result, request in pairs)
    devices = replace(allocation.devices, results=results)
    status = replace(claim.status, allocation=replace(allocation, devices=devices))
    return replace(claim, status=status)


def _scores(cache: ClusterCache, pod: Pod) -> tuple[list[int], list[int]]:
    """The raw and the normalised scores of the nodes that pass."""
    state, snapshot = CycleState(), cache.snapshot()
    framework = framework_for(cache)
    info = make_pod_info(pod, cache.classes)
    framework.run_pre_filter(state, info, snapshot)
    rows = framework.run_filter(state, info, snapshot).rows
    (scores,) = framework.run_score(state, info, snapshot, rows).per_plugin()
    return scores.raw.tolist(), scores.normalized.tolist()


def test_earlier_alternatives_score_more() -> None:
    cache = cluster_of(
        make_node("a"),
        make_node("b"),
        make_class("big", BIG),
        make_class("small", SMALL),
        make_slice("a", [device("gpu-0", model="small")]),
        make_slice("b", [device("gpu-0", model="big")]),
        make_claim("c", _either("big", "small")),
    )
    assert _scores(cache, pod_with_claims("p", "c")) == ([7, 8], [87, 100])


def test_an_alternative_scores_by_what_is_left_on_nodes_whose_extended_resource_is_a_device() -> (
    None
):
    resource = "example.com/gpu"
    cache = cluster_of(
        make_node("plugin", allocatable={resource: "1"}),
        make_node("devices"),
        make_class("big", BIG, resource),
        make_class("small", SMALL),
        *(
            make_slice(node, [device("gpu-0", model="big"), device("gpu-1", model="small")])
            for node in ("plugin", "devices")
        ),
        make_claim("c", _either("big", "small")),
    )
    # The pod's own request takes the only big device of the second node.
    raw, _ = _scores(cache, pod_with_claims("p", "c", requests={resource: "1"}))
    assert raw == [8, 7]


def test_the_alternative_of_an_allocated_claim_counts_beside_that_of_a_new_one() -> None:
    old = allocated(make_claim("old", _either("any", "small")), "a", "gpu-1")
    cache = cluster_of(
        make_node("a"),
        make_class("any"),
        make_class("small", SMALL),
        make_slice("a", [device("gpu-0", model="small"), device("gpu-1", model="big")]),
        _got(old, "r/any"),
        make_claim("new", _either("small", "any")),
    )
    assert _scores(cache, pod_with_claims("p", "old", "new"))[0] == [8 + 8]


def test_the_alternatives_of_all_requests_of_an_allocated_claim_count() -> None:
    requests = [{**_either("any", "small"), "name": name} for name in ("r", "s")]
    held = allocated(make_claim("c", *requests), "a", "gpu-0", "gpu-1")
    cache = cluster_of(
        make_node("a"),
        make_class("any"),
        make_class("small", SMALL),
        make_slice("a", [device(f"gpu-{number}", model="small") for number in range(3)]),
        _got(held, "r/any", "s/small"),
        make_claim("new", _either("any", "small")),
    )
    assert _scores(cache, pod_with_claims("p", "c", "new"))[0] == [(8 + 7) + 8]
