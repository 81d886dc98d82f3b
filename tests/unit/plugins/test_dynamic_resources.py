from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from stowage.api.objects.pod import PodResourceClaim, PodResourceClaimStatus, PodStatus
from stowage.api.status import Code
from stowage.api.values.claim_writes import EXTENDED_RESOURCE_CLAIM
from stowage.api.values.duration import Duration
from stowage.engine.scheduling import Failed, Scheduled, SchedulingRequest, TieBreaker, schedule_pod
from stowage.engine.state.time_limits import TimeLimits
from stowage.framework import CycleState, Diagnosis
from stowage.plugins.dynamic_resources import DynamicResources, DynamicResourcesArgs
from stowage.plugins.dynamic_resources.allocator import OutOfTime
from stowage.plugins.dynamic_resources.answers import Attempt
from stowage.plugins.dynamic_resources.templates import Templates
from stowage.state import ClusterCache, make_pod_info
from tests.support.builders import make_node, make_pod
from tests.support.device_builders import (
    allocated,
    device,
    make_claim,
    make_class,
    make_slice,
    pod_with_claims,
    request,
    with_version,
)
from tests.support.engines import of_type
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes
from tests.unit.plugins.device_cluster import cluster_of, framework_for, reason, schedule
from tests.unit.plugins.single_plugin import pre_filter

MODEL = "gpu.example.com/model"
ANY = {"cel": {"expression": "true"}}
PLUGIN = DynamicResources(DynamicResourcesArgs())


def test_a_pod_without_claims_passes_with_equal_scores() -> None:
    cluster = MirroredCluster([make_node("n0"), make_node("n1")])
    pod = make_pod("p")
    assert PLUGIN.pre_enqueue(cluster.info(pod)).is_success
    assert pre_filter(PLUGIN, cluster, pod).status.is_skip
    nodes = existing_nodes(cluster.snapshot())
    assert PLUGIN.score(CycleState(), cluster.info(pod), nodes).tolist() == [0, 0]


def test_post_filter_has_nothing_to_deallocate() -> None:
    cluster = MirroredCluster([make_node("n0")])
    pod, snapshot, state = cluster.info(make_pod("p")), cluster.snapshot(), CycleState()
    status, node_name = PLUGIN.post_filter(state, pod, snapshot, Diagnosis(1))
    assert (status.code, status.message, node_name) == (Code.ERROR, "not found", None)
    PLUGIN.pre_filter(state, pod, snapshot)
    status, node_name = PLUGIN.post_filter(state, pod, snapshot, Diagnosis(1))
    assert (status.code, node_name) == (Code.UNSCHEDULABLE, None)
    assert status.message == "no new claims to deallocate"


def test_time_limits_have_a_least_value() -> None:
    errors = DynamicResourcesArgs(Duration(-1), Duration(0)).validate()
    assert [error.path for error in errors] == ["filterTimeout", "bindingTimeout"]


TEMPLATE = PodResourceClaim("gpu", resource_claim_template_name="t")


@pytest.mark.parametrize(
    ("entry", "statuses", "claims", "problem"),
    [
        (
            PodResourceClaim("gpu"),
            (),
            (),
            'pod "default/p", spec.resourceClaim "gpu": none of the supported fields are set',
        ),
        (TEMPLATE, (), (), 'pod "default/p": ResourceClaim not created yet'),
        (
            PodResourceClaim("gpu", "c"),
            (),
            (),
            'could not find ResourceClaim "default/c"',
        ),
        (
            TEMPLATE,
            (PodResourceClaimStatus("gpu", "c"),),
            (make_claim("c"),),
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)",
        ),
    ],
    ids=["no field", "not generated", "missing", "not owned"],
)
def test_a_pod_whose_claims_are_not_there_is_gated(
    entry: PodResourceClaim,
    statuses: tuple[PodResourceClaimStatus, ...],
    claims: tuple[ResourceClaim, ...],
    problem: str,
) -> None:
    cache = cluster_of(*claims)
    pod = replace(
        make_pod("p", resource_claims=(entry,)), status=PodStatus(resource_claim_statuses=statuses)
    )
    status = framework_for(cache).run_pre_enqueue(make_pod_info(pod, cache.classes))
    assert (status.code, status.message) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, problem)


def test_a_claim_that_is_being_deleted_gates_its_pod() -> None:
    claim = make_claim("c")
    meta = replace(claim.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    cache = cluster_of(replace(claim, metadata=meta))
    status = framework_for(cache).run_pre_enqueue(
        make_pod_info(pod_with_claims("p", "c"), cache.classes)
    )
    assert status.message == 'resourceclaim "c" is being deleted'


def test_an_entry_that_needs_no_claim_is_skipped() -> None:
    cache = cluster_of(make_node("n"))
    status = PodStatus(resource_claim_statuses=(PodResourceClaimStatus("gpu"),))
    pod = replace(make_pod("p", resource_claims=(TEMPLATE,)), status=status)
    state = CycleState()
    assert getattr(schedule(cache, pod, state), "node_name", "") == "n"
    assert state.skip_filter == {"DynamicResources"}


def test_a_pod_goes_to_the_node_with_a_free_device() -> None:
    cache = cluster_of(
        make_node("a"),
        make_node("b"),
        make_class(),
        make_slice("a", ["gpu-0"]),
        make_slice("b", ["gpu-0"]),
        make_claim("c"),
        allocated(make_claim("other"), "a", "gpu-0"),
    )
    outcome = schedule(cache, pod_with_claims("p", "c"))
    assert getattr(outcome, "node_name", "") == "b"


def test_a_claim_in_flight_is_not_allocated_again() -> None:
    cache = cluster_of(make_node("a"), make_class(), make_slice("a", ["gpu-0"]), make_claim("c"))
    state, pod = CycleState(), pod_with_claims("p", "c")
    framework, info = framework_for(cache), make_pod_info(pod, cache.classes)
    snapshot = cache.snapshot()
    framework.run_pre_filter(state, info, snapshot)
    framework.run_filter(state, info, snapshot)
    (plan,) = framework.run_reserve(state, info, "a").plans.values()
    cache.begin_allocations(plan.allocations, "uid-p")
    text = "resource claim default/c is in the process of being allocated"
    assert text in reason(schedule(cache, pod_with_claims("q", "c")))
    cache.validate()
    cache.end_allocations([each.claim_uid for each in plan.allocations])
    assert getattr(schedule(cache, pod_with_claims("q", "c")), "node_name", "") == "a"


def test_a_class_that_does_not_exist_is_named() -> None:
    cache = cluster_of(make_node("a"), make_claim("c"))
    text = "request r: device class gpu does not exist"
    assert text in reason(schedule(cache, pod_with_claims("p", "c")))


def test_a_failing_selector_ends_the_attempt_only_where_the_device_is_free() -> None:
    objects = (
        make_node("a"),
        make_class(expression='device.attributes["gpu.example.com"].nosuch == 1'),
        make_slice("a", ["gpu-0"]),
        make_claim("c"),
    )
    failed = schedule(cluster_of(*objects), pod_with_claims("p", "c"))
    assert isinstance(failed, Failed)
    prefix = 'running "DynamicResources" filter plugin: class gpu: selector #0: CEL runtime error:'
    assert failed.status.message.startswith(prefix)
    cache = cluster_of(*objects, allocated(make_claim("other"), "a", "gpu-0"))
    assert "cannot allocate all claims" in reason(schedule(cache, pod_with_claims("p", "c")))


def test_an_invalid_node_selector_is_named_with_its_slice() -> None:
    wrong = {"matchExpressions": [{"key": "zone", "operator": "Near", "values": ["a"]}]}
    unusable = make_slice("b", ["gpu-1"], nodeSelector={"nodeSelectorTerms": [wrong]})
    objects = (make_node("a"), make_class(), make_slice("a", ["gpu-0"]), make_claim("c"))
    failed = schedule(cluster_of(*objects, unusable), pod_with_claims("p", "c"))
    assert isinstance(failed, Failed)
    assert failed.status.message.startswith(
        'running "DynamicResources" filter plugin: gather pool information: '
        "failed to perform node selection for slice b-slice: "
    )


def test_nothing_is_planned_for_a_pod_whose_claims_are_allocated() -> None:
    claim = allocated(make_claim("c"), "a", "gpu-0")
    cache = cluster_of(make_node("a"), make_class(), make_slice("a", ["gpu-0"]), claim)
    state, snapshot = CycleState(), cache.snapshot()
    framework = framework_for(cache)
    info = make_pod_info(pod_with_claims("p", "c"), cache.classes)
    framework.run_pre_filter(state, info, snapshot)
    framework.run_filter(state, info, snapshot)
    assert framework.run_reserve(state, info, "a").plans == {}


def test_a_search_that_takes_too_long_ends_the_attempt() -> None:
    devices = [device(f"gpu-{index}", model=f"m{index}") for index in range(24)]
    claim = make_claim(
        "c",
        request("r", count=9),
        constraints=[
            {"requests": ["r"], "matchAttribute": MODEL},
        ],
    )
    distinct = [{"distinctAttribute": MODEL}]  # so that nothing is left out
    several = make_claim("d", *(request(f"r{index}") for index in range(5)), constraints=distinct)
    nodes = [each for name in "ab" for each in (make_node(name), make_slice(name, devices))]
    cache = cluster_of(*nodes, make_class(), several, claim)
    times, started = iter(range(10_000)), list[float]()
    limits = TimeLimits(lambda: float(next(times)))

    def start_limit(limit_s: float) -> Callable[[], bool]:
        started.append(limit_s)
        return limits.start(limit_s)

    framework, snapshot = framework_for(cache, filter_timeout=Duration(10)), cache.snapshot()
    pod = make_pod_info(pod_with_claims("p", "d", "c"), cache.classes)
    for only, named in ((None, "a"), (frozenset("b"), "b")):
        state, ties = CycleState(start_limit=start_limit), TieBreaker(lambda _: 0)
        failed = schedule_pod(
            SchedulingRequest(framework, snapshot, pod, state, ties, node_names=only)
        )
        assert isinstance(failed, Failed)
        text = f"node {named}: timed out trying to allocate devices"
        assert failed.status.message.endswith(text)
    assert started == [10, 10]


@pytest.mark.parametrize(("names", "fits"), [(["gpu-0"], False), (["gpu-0", "gpu-1"], True)])
def test_a_claim_with_admin_access_gets_no_device_twice(names: list[str], fits: bool) -> None:
    requests = (request(name, adminAccess=True) for name in ("r", "s"))
    claim = make_claim("c", *requests, constraints=[{"matchAttribute": MODEL}])
    devices = [device(name, model="m") for name in names]
    cache = cluster_of(make_node("a"), make_class(), make_slice("a", devices), claim)
    assert isinstance(schedule(cache, pod_with_claims("p", "c")), Scheduled) is fits


def test_two_requests_of_a_claim_for_all_devices_exclude_each_other_although_for_admins() -> None:
    everything = {"adminAccess": True, "allocationMode": "All", "count": 0}
    for names, fits in ((["r"], True), (["r", "s"], False)):
        claim = make_claim("c", *(request(name, **everything) for name in names))
        devices = [device("gpu-0"), device("gpu-1")]
        cache = cluster_of(make_node("a"), make_class(), make_slice("a", devices), claim)
        assert isinstance(schedule(cache, pod_with_claims("p", "c")), Scheduled) is fits


def test_the_clock_is_read_once_in_64_steps_of_a_search() -> None:
    alike = [{"matchAttribute": MODEL}]
    claims = [make_claim(name, request(count=30), constraints=alike) for name in "cde"]
    devices = [device(f"gpu-{index}", model="m") for index in range(90)]
    cache = cluster_of(make_node("a"), make_class(), make_slice("a", devices), *claims)
    num_reads = 0

    def is_late() -> bool:
        nonlocal num_reads
        num_reads += 1
        return False

    state = CycleState(start_limit=lambda _limit_s: is_late)
    pod = pod_with_claims("p", "c", "d", "e")
    assert isinstance(schedule(cache, pod, state, filter_timeout=Duration(10)), Scheduled)
    assert num_reads == 1


@pytest.mark.parametrize("constraint", ["matchAttribute", "distinctAttribute"])
def test_two_searches_are_enough_for_two_pods_of_a_template_while_no_device_changes(
    constraint: str,
) -> None:
    """Match constraints are checked on all nodes at once; each pod gets its devices by a search.

    With other constraints a search on each node finds the devices for all pods.
    """
    claims = [
        make_claim(name, request("r", count=2), constraints=[{constraint: MODEL}])
        for name in ("c", "d")
    ]
    models = ("m", "m" if constraint == "matchAttribute" else "n")
    devices = [device(f"gpu-{model}-{at}", model=model) for at, model in enumerate(models)]
    nodes = [each for name in "ab" for each in (make_node(name), make_slice(name, devices))]
    cache = cluster_of(*nodes, make_class(), *claims)
    framework, started = framework_for(cache, filter_timeout=Duration(10)), list[float]()

    def start_limit(limit_s: float) -> Callable[[], bool]:
        started.append(limit_s)
        return lambda: False

    for name in ("c", "d"):
        pod = make_pod_info(pod_with_claims(f"p-{name}", name), cache.classes)
        state, ties = CycleState(start_limit=start_limit), TieBreaker(lambda _: 0)
        outcome = schedule_pod(SchedulingRequest(framework, cache.snapshot(), pod, state, ties))
        assert isinstance(outcome, Scheduled)
        framework.run_reserve(state, pod, outcome.node_name)
    assert started == [10, 10]


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


def test_earlier_alternatives_score_more() -> None:
    alternatives = [
        {"name": name, "deviceClassName": name, "allocationMode": "ExactCount", "count": 1}
        for name in ("big", "small")
    ]
    claim = make_claim("c", {"name": "r", "firstAvailable": alternatives})
    cache = cluster_of(
        make_node("a"),
        make_node("b"),
        make_class("big", 'device.attributes["gpu.example.com"].model == "big"'),
        make_class("small", 'device.attributes["gpu.example.com"].model == "small"'),
        make_slice("a", [device("gpu-0", model="small")]),
        make_slice("b", [device("gpu-0", model="big")]),
        claim,
    )
    pod, state, snapshot = pod_with_claims("p", "c"), CycleState(), cache.snapshot()
    framework, info = framework_for(cache), make_pod_info(pod, cache.classes)
    framework.run_pre_filter(state, info, snapshot)
    rows = framework.run_filter(state, info, snapshot).rows
    (scores,) = framework.run_score(state, info, snapshot, rows).per_plugin()
    assert scores.raw.tolist() == [7, 8]
    assert scores.normalized.tolist() == [87, 100]


def test_an_alternative_scores_by_what_is_left_on_nodes_whose_extended_resource_is_a_device() -> (
    None
):
    alternatives = [
        {"name": name, "deviceClassName": name, "allocationMode": "ExactCount", "count": 1}
        for name in ("big", "small")
    ]
    resource = "example.com/gpu"
    cache = cluster_of(
        make_node("plugin", allocatable={resource: "1"}),
        make_node("devices"),
        make_class("big", 'device.attributes["gpu.example.com"].model == "big"', resource),
        make_class("small", 'device.attributes["gpu.example.com"].model == "small"'),
        *(
            make_slice(node, [device("gpu-0", model="big"), device("gpu-1", model="small")])
            for node in ("plugin", "devices")
        ),
        make_claim("c", {"name": "r", "firstAvailable": alternatives}),
    )
    pod = pod_with_claims("p", "c", requests={resource: "1"})
    state, snapshot = CycleState(), cache.snapshot()
    framework, info = framework_for(cache), make_pod_info(pod, cache.classes)
    framework.run_pre_filter(state, info, snapshot)
    rows = framework.run_filter(state, info, snapshot).rows
    (scores,) = framework.run_score(state, info, snapshot, rows).per_plugin()
    # The pod's own request takes the only big device of the second node.
    assert scores.raw.tolist() == [8, 7]


@pytest.mark.parametrize(
    ("values", "requests"),
    [
        # Half of the devices have the one value, half the other: no 17 are alike.
        (["m0", "m1"] * 16, [request(count=17)]),
        # Any 8 devices for the first request leave too few for the second.
        (["m0"] * 31, [request("r", count=16), request("s", count=16, selectors=[ANY])]),
        # Each device has a value of its own.
        ([f"m{index}" for index in range(128)], [request(f"r{i}", count=8) for i in range(4)]),
    ],
)
def test_a_search_without_hope_ends_soon(values: list[str], requests: list[Any]) -> None:
    devices = [device(f"gpu-{index}", model=value) for index, value in enumerate(values)]
    claim = make_claim("c", *requests, constraints=[{"matchAttribute": MODEL}])
    cache = cluster_of(make_node("a"), make_class(), make_slice("a", devices), claim)
    assert searched_steps(cache, claim) == (False, True)


def test_a_search_passes_over_values_of_too_few_devices() -> None:
    """20 devices of one value, then 30 of another: 25 of these are found soon."""
    values = ["m0"] * 20 + ["m1"] * 30
    devices = [device(f"gpu-{index}", model=value) for index, value in enumerate(values)]
    claim = make_claim("c", request(count=25), constraints=[{"matchAttribute": MODEL}])
    cache = cluster_of(make_node("a"), make_class(), make_slice("a", devices), claim)
    assert searched_steps(cache, claim) == (True, True)


def searched_steps(cache: ClusterCache, claim: ResourceClaim) -> tuple[bool, bool]:
    """Whether the exact search found devices, and within 64 checks of its time limit."""
    snapshot, checks = cache.snapshot(), iter(range(64))
    template = Templates().of([claim.spec])
    attempt = Attempt(snapshot, template, ("c",), lambda: lambda: next(checks, None) is None)
    row = snapshot.row_of("a")
    assert row is not None
    try:
        return attempt.search(row, {}) is not None, True
    except OutOfTime:
        return False, False
