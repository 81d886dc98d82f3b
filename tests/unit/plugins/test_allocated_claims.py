"""Claims that are allocated: where their pods go, and which are deallocated or deleted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stowage.api.instructions import DeallocateClaim, DeleteClaim
from stowage.api.objects.device import (
    AllocatedDeviceStatus,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from stowage.api.objects.meta import Condition, OwnerReference
from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.values.claim_writes import EXTENDED_RESOURCE_CLAIM
from stowage.framework import CycleState
from stowage.plugins.dynamic_resources import DynamicResources, DynamicResourcesArgs
from stowage.state import make_pod_info
from tests.support.builders import make_node, make_pod
from tests.support.device_builders import (
    allocated,
    make_claim,
    make_class,
    make_slice,
    pod_with_claims,
    with_version,
)
from tests.support.engines import of_type
from tests.unit.plugins.device_cluster import cluster_of, framework_for, reason, schedule


def test_nothing_is_planned_for_a_pod_whose_claims_are_allocated() -> None:
    claim = allocated(make_claim("c"), "a", "gpu-0")
    cache = cluster_of(make_node("a"), make_class(), make_slice("a", ["gpu-0"]), claim)
    state, snapshot = CycleState(), cache.snapshot()
    framework = framework_for(cache)
    info = make_pod_info(pod_with_claims("p", "c"), cache.classes)
    framework.run_pre_filter(state, info, snapshot)
    framework.run_filter(state, info, snapshot)
    assert framework.run_reserve(state, info, "a").plans == {}


def on_node(claim: ResourceClaim, node_name: str) -> ResourceClaim:
    return allocated(claim, node_name, "gpu-0")


def used_by(claim: ResourceClaim, *pods: str) -> ResourceClaim:
    consumers = tuple(
        ResourceClaimConsumerReference(resource="pods", name=each, uid=f"uid-{each}")
        for each in pods
    )
    return replace(claim, status=replace(claim.status, reserved_for=consumers))


def pinned(claim: ResourceClaim, node_name: str) -> ResourceClaim:
    """The claim, available on one node only."""
    here = NodeSelectorRequirement("metadata.name", "In", (node_name,))
    allocation = claim.status.allocation
    assert allocation is not None
    selector = NodeSelector((NodeSelectorTerm(match_fields=(here,)),))
    allocation = replace(allocation, node_selector=selector)
    return replace(claim, status=replace(claim.status, allocation=allocation))


def test_an_allocated_claim_brings_its_pod_to_its_node() -> None:
    claim = pinned(on_node(make_claim("c"), "b"), "b")
    cache = cluster_of(make_node("a"), make_node("b"), make_class(), claim)
    assert getattr(schedule(cache, pod_with_claims("p", "c")), "node_name", "") == "b"


def test_a_pod_is_bound_with_the_devices_that_its_node_was_chosen_for() -> None:
    """While the pod waits at Permit, its claim may be freed, and allocated or created again."""
    slices = [make_slice(name, ["gpu-0"]) for name in ("a", "b")]
    claim = pinned(on_node(make_claim("c"), "a"), "a")
    cache = cluster_of(make_node("a"), make_node("b"), make_class(), *slices, claim)
    plugin, state = DynamicResources(DynamicResourcesArgs()), CycleState()
    plugin.read_snapshots(cache.snapshot)
    pod = make_pod_info(pod_with_claims("p", "c"), cache.classes)
    plugin.pre_filter(state, pod, cache.snapshot())

    moved = pinned(on_node(make_claim("c"), "b"), "b")
    cache.update_device_object(with_version(moved, "8"))
    (wanted,) = plugin.pre_bind_writes(state, pod, "a").claims
    assert wanted.claim.metadata.resource_version == "8"
    assert wanted.known == claim.status.allocation

    again = replace(moved.metadata, uid="another", resource_version="9")
    cache.update_device_object(replace(moved, metadata=again))
    (wanted,) = plugin.pre_bind_writes(state, pod, "a").claims
    assert wanted.claim == claim


@pytest.mark.parametrize(
    ("consumers", "is_deallocated"), [((), True), (("p",), True), (("q",), False)]
)
def test_an_unavailable_claim_that_nobody_else_uses_is_deallocated(
    consumers: tuple[str, ...], is_deallocated: bool
) -> None:
    claim = used_by(pinned(on_node(make_claim("c"), "b"), "gone"), *consumers)
    cache, state = cluster_of(make_node("a"), make_class(), claim), CycleState()
    pod = pod_with_claims("p", "c")
    pod = replace(pod, metadata=replace(pod.metadata, uid="uid-p"))
    outcome = schedule(cache, pod, state)
    text = "deallocation of ResourceClaim completed" if is_deallocated else "still not schedulable"
    assert reason(outcome).endswith(f"resourceclaim not available on the node. {text}")
    released = of_type(DeallocateClaim, state.take_instructions())
    assert [each.claim.name for each in released] == (["c"] if is_deallocated else [])


def test_of_several_unavailable_claims_the_first_by_name_is_given_back() -> None:
    claims = [allocated(make_claim(name), node, "gpu-0") for name, node in (("d", "a"), ("c", "b"))]
    unavailable = [pinned(claim, "nowhere") for claim in claims]
    cache = cluster_of(make_node("a"), make_node("b"), make_class(), *unavailable)
    state = CycleState()
    schedule(cache, pod_with_claims("p", "d", "c"), state)
    (given_back,) = state.take_instructions()
    assert isinstance(given_back, DeallocateClaim)
    assert given_back.claim.name == "c"


def _waiting_claim() -> ResourceClaim:
    """A claim whose device becomes ready, or breaks."""
    return allocated(
        make_claim("c"),
        "a",
        "gpu-0",
        binding_conditions=("ready",),
        binding_failure_conditions=("broken",),
    )


@pytest.mark.parametrize(
    ("conditions", "node_name"),
    [({"ready": "True"}, "a"), ({}, "a"), ({"ready": "True", "broken": "True"}, "")],
)
def test_a_claim_whose_device_failed_is_unavailable(
    conditions: dict[str, str], node_name: str
) -> None:
    claim = _waiting_claim()
    listed = tuple(Condition(name, value) for name, value in conditions.items())
    status = AllocatedDeviceStatus("gpu.example.com", "a", "gpu-0", conditions=listed)
    claim = replace(claim, status=replace(claim.status, devices=(status,)))
    outcome = schedule(cluster_of(make_node("a"), make_class(), claim), pod_with_claims("p", "c"))
    assert getattr(outcome, "node_name", "") == node_name


@pytest.mark.parametrize(
    ("conditions", "node_name"), [(("ready", "broken"), "a"), (("broken", "ready"), "")]
)
def test_the_first_status_of_a_device_counts_for_all_shares_of_it(
    conditions: tuple[str, ...], node_name: str
) -> None:
    claim = _waiting_claim()
    listed = tuple(
        AllocatedDeviceStatus(
            "gpu.example.com", "a", "gpu-0", conditions=(Condition(name, "True"),)
        )
        for name in conditions
    )
    claim = replace(claim, status=replace(claim.status, devices=listed))
    outcome = schedule(cluster_of(make_node("a"), make_class(), claim), pod_with_claims("p", "c"))
    assert getattr(outcome, "node_name", "") == node_name


@pytest.mark.parametrize(("passed_s", "node_name"), [(599.0, "a"), (601.0, "")])
def test_a_claim_whose_device_is_not_ready_in_time_is_unavailable(
    passed_s: float, node_name: str
) -> None:
    claim = allocated(make_claim("c"), "a", "gpu-0", binding_conditions=("ready",))
    allocation = claim.status.allocation
    assert allocation is not None
    allocation = replace(allocation, allocation_timestamp="1970-01-01T00:00:00Z")
    claim = replace(claim, status=replace(claim.status, allocation=allocation))
    cache, state = (
        cluster_of(make_node("a"), make_class(), claim),
        CycleState(wall_clock=lambda: passed_s),
    )
    assert getattr(schedule(cache, pod_with_claims("p", "c"), state), "node_name", "") == node_name


def test_a_stale_claim_for_extended_resources_is_deleted() -> None:
    claim = make_claim("p-extended-resources-x")
    owner = OwnerReference("Pod", "p", "uid-p", "v1", controller=True)
    meta = replace(
        claim.metadata, annotations={EXTENDED_RESOURCE_CLAIM: "true"}, owner_references=(owner,)
    )
    cache, state = (
        cluster_of(
            make_node("a"),
            make_class(resource="example.com/gpu"),
            make_slice("a", ["gpu-0"]),
            replace(claim, metadata=meta),
        ),
        CycleState(),
    )
    pod = make_pod("p", requests={"example.com/gpu": "1"})
    pod = replace(pod, metadata=replace(pod.metadata, uid="uid-p"))
    assert reason(schedule(cache, pod, state)).endswith("deletion of ResourceClaim completed")
    (deletion,) = state.take_instructions()
    assert isinstance(deletion, DeleteClaim)
    assert deletion.claim.name == "p-extended-resources-x"
