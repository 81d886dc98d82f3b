"""Feature gates of dynamic resource allocation: what changes when one is switched off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from msgspec.structs import replace

from stowage.api.cluster_events import EventResource
from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.config.loading import (
    InvalidConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
    load_configuration,
)
from stowage.api.events import DeviceObjectSeen, Event, NodeSeen, PendingPodSeen
from stowage.api.instructions import AttemptResult, BindClaims, ClaimToBind
from stowage.api.objects.device import ResourceClaim
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.values.claim_writes import with_reservation
from stowage.cli.profiles import make_frameworks
from stowage.engine import Engine, Journal, make_engine, replay
from stowage.engine.journal import MakeEngine, ReplayDiverged, ScheduleCall
from stowage.framework import Framework, build_profile
from stowage.plugins import in_tree_registry
from tests.support.builders import make_node, make_pod
from tests.support.device_builders import (
    allocated,
    device,
    make_claim,
    make_class,
    make_slice,
    pod_with_claims,
    quantities,
    request,
)
from tests.support.engines import of_type

Choose: TypeAlias = Callable[[int], int]
WallTime: TypeAlias = Callable[[], float]

BINDING = "DRADeviceBindingConditions=false"
TAINT = {"key": "broken", "effect": "NoSchedule"}
FAST = {"consumesCounters": [{"counterSet": "s", "counters": quantities({"memory": "4Gi"})}]}
SHARED = {"allowMultipleAllocations": True, "capacity": quantities({"memory": "8Gi"})}


def engine_with(gates: str) -> Engine:
    registry = in_tree_registry(parse_feature_gates([gates]))
    profile = KubeSchedulerProfile(scheduler_name="default-scheduler")
    return make_engine([Framework(build_profile(profile, registry))], lambda _ties: 0)


def event(obj: Any) -> Event:
    if isinstance(obj, Node):
        return NodeSeen(obj)
    return PendingPodSeen(obj) if isinstance(obj, Pod) else DeviceObjectSeen(obj)


def attempt(gates: str, *objects: Any) -> tuple[AttemptResult, list[BindClaims]]:
    """The attempt of the only pod, and what is to be written."""
    engine = engine_with(gates)
    engine.handle([event(each) for each in objects], 0.0)
    answer = engine.schedule(1.0, 1)
    (result,) = of_type(AttemptResult, answer)
    engine.validate()
    return result, of_type(BindClaims, answer)


def devices_of(writes: list[BindClaims]) -> list[str]:
    return [
        result.device
        for each in writes
        for claim in each.claims
        if claim.allocation is not None
        for result in claim.allocation.devices.results
    ]


def given(
    *devices: Any, claim: ResourceClaim | None = None, **slice_fields: Any
) -> tuple[Any, ...]:
    """A node with these devices, and a pod with a claim."""
    pod = pod_with_claims("p", "c")
    cluster = make_node("a"), make_class(), make_slice("a", devices, **slice_fields)
    return *cluster, claim or make_claim("c"), pod


def test_device_taints_off_gives_a_tainted_device_away() -> None:
    objects = given(device("d", taints=[TAINT]))
    assert "cannot allocate all claims" in attempt("", *objects)[0].message
    assert devices_of(attempt("DRADeviceTaints=false,DRADeviceTaintRules=false", *objects)[1]) == [
        "d"
    ]


def test_binding_conditions_off_leaves_devices_with_conditions_alone() -> None:
    objects = given(device("d", bindingConditions=["ready"], bindingFailureConditions=["broken"]))
    assert devices_of(attempt("", *objects)[1]) == ["d"]
    for gates in (BINDING, f"{BINDING},DRAResourceClaimDeviceStatus=false"):
        assert "cannot allocate all claims" in attempt(gates, *objects)[0].message


@pytest.mark.parametrize("gates", ["", BINDING])
def test_an_allocated_device_with_binding_conditions_consumes_counters_whatever_the_gate(
    gates: str,
) -> None:
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 2}
    sets = [{"name": "s", "counters": quantities({"memory": "4Gi"})}]
    counters = make_slice("a", name="counters", pool=pool, sharedCounters=sets)
    slow = device("slow", bindingConditions=["ready"], **FAST)
    objects = (counters, *given(slow, device("part", **FAST), pool=pool))
    used = allocated(make_claim("other"), "a", "slow")
    assert "cannot allocate all claims" in attempt(gates, used, *objects)[0].message
    assert devices_of(attempt(gates, *objects)[1]) == (["part"] if gates else ["slow"])


def test_binding_conditions_off_does_not_make_a_pool_valid_that_has_a_device_twice() -> None:
    objects = given("d", device("d", bindingConditions=["ready"]))
    for gates in ("", BINDING):
        message = attempt(gates, *objects)[0].message
        assert "invalid resource pools were encountered" in message


def test_binding_conditions_off_ignores_those_of_an_allocated_claim() -> None:
    claim = allocated(make_claim("c"), "a", "d", binding_conditions=("ready",))
    wanted = ClaimToBind(claim)
    (writes,) = attempt(BINDING, *given("d", claim=claim))[1]
    assert not writes.sets_time
    reserved = with_reservation(claim, wanted, writes.pod, None)
    assert reserved.status.allocation == claim.status.allocation


def test_partitionable_devices_off_never_gives_a_partition_away() -> None:
    counters = make_slice(
        "a",
        name="counters",
        pool={"name": "a", "generation": 1, "resourceSliceCount": 2},
        sharedCounters=[{"name": "s", "counters": quantities({"memory": "8Gi"})}],
    )
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 2}
    objects = (counters, *given(device("part", **FAST), "whole", pool=pool))
    assert devices_of(attempt("", *objects)[1]) == ["part"]
    assert devices_of(attempt("DRAPartitionableDevices=false", *objects)[1]) == ["whole"]


def test_partitionable_devices_off_fails_a_request_for_all_where_one_is_a_partition() -> None:
    claim = make_claim("c", request(allocationMode="All"))
    result, _ = attempt(
        "DRAPartitionableDevices=false", *given(device("part", **FAST), "whole", claim=claim)
    )
    assert "cannot allocate all claims" in result.message


def test_partitionable_devices_off_skips_slices_with_nodes_per_device() -> None:
    objects = given(device("d", nodeName="a"), perDeviceNodeSelection=True)
    assert devices_of(attempt("", *objects)[1]) == ["d"]
    result, _ = attempt("DRAPartitionableDevices=false", *objects)
    assert "cannot allocate all claims" in result.message


def test_consumable_capacity_off_gives_a_shared_device_to_one_claim() -> None:
    used = allocated(make_claim("other"), "a", "d", share_id="s", consumed_capacity={"memory": 1})
    objects = (used, *given(device("d", **SHARED)))
    gates = "DRAConsumableCapacity=false"
    assert "cannot allocate all claims" in attempt(gates, *objects)[0].message
    (writes,) = attempt(gates, *objects[1:])[1]
    allocation = writes.claims[0].allocation
    assert allocation is not None
    (result,) = allocation.devices.results
    assert (result.share_id, result.consumed_capacity) == (None, {})


CAPACITY: dict[str, Any] = {"capacity": {"requests": {"memory": "1Gi"}}}
ALTERNATIVE = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        (request(**CAPACITY), "request r"),
        (
            {"name": "r", "firstAvailable": [{"name": "x", **ALTERNATIVE, **CAPACITY}]},
            "subrequest x",
        ),
    ],
    ids=["request", "alternative"],
)
def test_consumable_capacity_off_is_an_error_for_capacity_requests(
    wanted: dict[str, Any], named: str
) -> None:
    objects = given(device("d", **SHARED), claim=make_claim("c", wanted))
    assert devices_of(attempt("", *objects)[1]) == ["d"]
    text = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
    message = attempt("DRAConsumableCapacity=false", *objects)[0].message
    assert f"claim default/c, {named}: {text}" in message


@pytest.mark.parametrize("gates", ["", "DRAConsumableCapacity=false"])
def test_selectors_see_what_a_device_says_of_sharing_whatever_the_gate(gates: str) -> None:
    objects = (
        make_node("a"),
        make_class(expression="device.allowMultipleAllocations"),
        make_slice("a", ["whole", device("shared", **SHARED)]),
        make_claim("c"),
        pod_with_claims("p", "c"),
    )
    (writes,) = attempt(gates, *objects)[1]
    allocation = writes.claims[0].allocation
    assert allocation is not None
    (result,) = allocation.devices.results
    assert (result.device, result.share_id is None) == ("shared", bool(gates))


def test_prioritized_list_off_refuses_alternatives() -> None:
    claim = make_claim("c", {"name": "r", "firstAvailable": [{"name": "x", **ALTERNATIVE}]})
    objects = given("d", claim=claim)
    assert devices_of(attempt("", *objects)[1]) == ["d"]
    text = "has subrequests, but the DRAPrioritizedList feature is disabled"
    message = attempt("DRAPrioritizedList=false", *objects)[0].message
    assert f"resource claim default/c, request r: {text}" in message


def test_extended_resources_off_leaves_them_to_device_plugins() -> None:
    objects = (
        make_node("a"),
        make_class(resource="example.com/gpu"),
        make_slice("a", ["d"]),
        make_pod("p", requests={"example.com/gpu": "1"}),
    )
    assert attempt("", *objects)[0].node_name == "a"
    result, _ = attempt("DRAExtendedResource=false", *objects)
    assert "Insufficient example.com/gpu" in result.message
    registered = engine_with("DRAExtendedResource=false").state.frameworks["default-scheduler"]
    events = registered.events_by_plugin["NodeResourcesFit"]
    assert all(each.event.resource is not EventResource.DEVICE_CLASS for each in events)


@pytest.mark.parametrize(
    ("gate", "limit"),
    [
        ("DRASchedulerFilterTimeout=false", "filterTimeout"),
        (BINDING, "bindingTimeout"),
    ],
)
def test_a_time_limit_whose_gate_is_off_cannot_be_set(gate: str, limit: str) -> None:
    profile = KubeSchedulerProfile(plugin_config=(PluginConfig("DynamicResources", {limit: "3s"}),))
    configuration = load_configuration()
    configuration = type(configuration)(profiles=(profile,))
    make_frameworks(configuration, in_tree_registry())
    name = gate.partition("=")[0]
    with pytest.raises(InvalidConfiguration, match=f"{limit} is set, .*{name}.* is disabled"):
        make_frameworks(configuration, in_tree_registry(parse_feature_gates([gate])))


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("DRASchedulerFilterTimeout=true", "timed out trying to allocate devices"),
        ("DRASchedulerFilterTimeout=false", "cannot allocate all claims"),
    ],
)
def test_without_a_filter_timeout_a_search_takes_as_long_as_it_takes(
    gate: str, message: str
) -> None:
    registry = in_tree_registry(parse_feature_gates([gate]))
    profile = KubeSchedulerProfile(scheduler_name="default-scheduler")
    times = iter(range(0, 10_000_000, 1000))
    journal = Journal()
    engine = make_engine(
        [Framework(build_profile(profile, registry))],
        lambda _ties: 0,
        timer=lambda: float(next(times)),
        journal=journal,
    )
    devices = [device(f"d{index}", model=f"m{index}") for index in range(12)]
    claim = make_claim(
        "c", request(count=5), constraints=[{"matchAttribute": "gpu.example.com/model"}]
    )
    distinct = [{"distinctAttribute": "gpu.example.com/model"}]
    several = make_claim("d", request("r0"), request("r1"), constraints=distinct)
    objects = (make_node("a"), make_class(), make_slice("a", devices), several, claim)
    engine.handle([event(each) for each in (*objects, pod_with_claims("p", "d", "c"))], 0.0)
    (result,) = of_type(AttemptResult, engine.schedule(1.0, 1))
    assert message in result.message

    def without_clock(choose: Choose, wall_clock: WallTime) -> Engine:
        framework = Framework(build_profile(profile, registry))
        return make_engine([framework], choose, wall_clock=wall_clock)

    assert_replays_only_with_its_late_checks(journal, without_clock)


def assert_replays_only_with_its_late_checks(journal: Journal, make: MakeEngine[Engine]) -> None:
    """Check that the replay, whose clock stands still, depends on the recorded late checks."""
    replay(journal, make)
    last = journal.entries[-1]
    assert isinstance(last, ScheduleCall)
    num_checks = len(last.late_checks)
    never_made = (*last.late_checks, 10_000_000)
    for late_checks in (() if num_checks else (0,), never_made):
        changed = Journal()
        for entry in journal.entries[:-1]:
            changed.record(entry)
        changed.record(replace(last, late_checks=late_checks))
        with pytest.raises(ReplayDiverged):
            replay(changed, make)
