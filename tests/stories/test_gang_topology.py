"""Pod groups with a topology key: one domain for all members, the best of several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from stowage.api.config.feature_gates import FeatureGates, parse_feature_gates
from stowage.api.events import DeviceObjectSeen, StorageSeen
from stowage.api.instructions import BindClaims, BindVolumes, DeallocateClaim, PatchPodStatus
from stowage.api.objects.device import DeviceObject
from stowage.api.objects.node import Taint
from stowage.api.objects.pod import PodSchedulingGroup, TopologySpreadConstraint
from stowage.api.objects.pod_groups import PodGroupSchedulingConstraints
from stowage.api.status import SUCCESS, Status, unschedulable
from stowage.framework import CycleState, Diagnosis
from stowage.plugins.placement_fragmentation import PlacementFragmentation
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot
from tests.stories.gang_driver import GangDriver, make_group
from tests.support import volume_builders as storage
from tests.support.builders import HOSTNAME, label_selector, make_pod
from tests.support.device_builders import (
    allocated,
    make_claim,
    make_class,
    make_slice,
    pod_with_claims,
    request,
)

BARRED = "preemption: not eligible due to placement-based pod group scheduling limitation"


def _driver(*racks: tuple[str, int], cpu: str = "2", **options: Any) -> GangDriver:
    """A driver with so many nodes in each rack; node names are rack and number."""
    driver = GangDriver(**options)
    for rack, num_nodes in racks:
        for number in range(num_nodes):
            name = f"{rack}-{number}"
            driver.add_nodes(name, cpu=cpu, memory="2Gi", labels={"rack": rack})
    return driver


def _gates(*names: str, gangs: str = "true") -> FeatureGates:
    """The gates of topology-aware scheduling, and these."""
    on = ("GenericWorkload", "TopologyAwareWorkloadScheduling", *names)
    return parse_feature_gates([*(f"{name}=true" for name in on), f"GangScheduling={gangs}"])


def _racks(driver: GangDriver) -> set[str]:
    return {driver.node_of(name).partition("-")[0] for name in driver.bound() if name[0] == "p"}


def _num_filtered(driver: GangDriver) -> int:
    """How many nodes NodeResourcesFit was asked about."""
    counts = driver.engine.evaluation_counts()
    return counts["NodeResourcesFit", "Filter", "default-scheduler"]


def _chooser(choice: int) -> Callable[[int], int]:
    return lambda _num_ties: choice


def _gang(driver: GangDriver, num: int, min_count: int | None = None, **fields: Any) -> None:
    driver.show_group(make_group(min_count=min_count or num, topology="rack"))
    driver.create_members(*(f"p-{number}" for number in range(num)), **fields)


def _show_members_with_claims(driver: GangDriver, *claims: str, cpu: str) -> None:
    driver.show_group(make_group(min_count=len(claims), topology="rack"))
    for number, claim in enumerate(claims):
        group = PodSchedulingGroup("g")
        driver.show(pod_with_claims(f"p-{number}", claim, scheduling_group=group, cpu=cpu))


def test_a_gang_goes_to_the_one_domain_that_holds_all_of_it() -> None:
    driver = _driver(("r1", 1), ("r2", 2), ("r3", 1))
    _gang(driver, 4)
    driver.run()
    assert len(driver.bound()) == 4
    assert _racks(driver) == {"r2"}
    driver.check_replay()


def test_of_two_domains_the_one_that_ends_up_fuller_wins() -> None:
    driver = _driver(("r1", 3), ("r2", 2))
    _gang(driver, 3, memory="1Gi")
    driver.run()
    assert len(driver.bound()) == 3
    assert _racks(driver) == {"r2"}


def test_nodes_without_the_label_are_in_no_domain() -> None:
    driver = GangDriver()
    driver.add_nodes("bare", cpu="8")
    _gang(driver, 2)
    driver.run()
    assert driver.bound() == []
    assert driver.condition() == ("False", "Unschedulable", "no feasible placements found")
    messages = {each.message for each in driver.take(PatchPodStatus) if each.reason}
    assert messages == {"no feasible placements found"}
    driver.add_nodes("bare", cpu="8", labels={"rack": "r1"})
    driver.run(3)
    assert len(driver.bound()) == 2


def test_a_gang_that_fits_only_across_domains_does_not_fit_and_may_not_preempt() -> None:
    driver = _driver(("r1", 1), ("r2", 1))
    driver.show(make_pod("low", cpu="1", node="r2-0", priority=-10))
    _gang(driver, 3)
    driver.run()
    assert driver.bound() == ["low"]
    text = "0/2 placements are available, first placement status: pod group is unschedulable"
    assert driver.condition() == ("False", "Unschedulable", text)
    own = f"0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, {BARRED}"
    messages = [each.message for each in driver.take(PatchPodStatus) if each.reason]
    assert messages.count(own) == 1
    assert driver.evicted == []


def test_a_late_member_joins_the_domain_of_the_bound_ones_however_roomy_another_is() -> None:
    driver = _driver(("r1", 1), ("r2", 1))
    _gang(driver, 2)
    driver.run()
    rack = _racks(driver)
    driver.create_members("p-late")
    driver.run(5)
    assert driver.bound("p-late") == []
    driver.add_nodes(f"{rack.pop()}-9", cpu="1", labels={"rack": driver.node_of("p-0")[:2]})
    driver.run(12)
    assert driver.node_of("p-late").endswith("-9")


def test_a_member_that_is_bound_elsewhere_leaves_its_nominated_node_to_others() -> None:
    driver = _driver(("r1", 1), ("r2", 2), ("r3", 2))
    driver.show(make_pod("first", cpu="2", node_selector={"rack": "r1"}))
    _gang(driver, 2, cpu="2", nominated_node="r1-0")
    driver.run()
    assert _racks(driver) in ({"r2"}, {"r3"})
    assert driver.node_of("first") == "r1-0"


def test_bound_members_in_two_domains_are_an_error() -> None:
    driver = _driver(("r1", 1), ("r2", 1))
    driver.show_group(make_group(min_count=1, topology="rack"))
    for name, node in (("p-0", "r1-0"), ("p-1", "r2-0")):
        driver.create_members(name, node=node)
    driver.create_members("p-2")
    driver.run()
    text = (
        "cannot determine domain for already scheduled pods: "
        "more than 1 domain found for pod group: r1, r2"
    )
    assert driver.condition() == ("False", "SchedulerError", text)


def test_a_domain_behind_a_taint_counts_only_for_gangs_that_tolerate_it() -> None:
    driver = _driver(("r1", 1))
    driver.add_nodes("r2-0", cpu="8", labels={"rack": "r2"}, taints=[Taint("k", "", "NoSchedule")])
    _gang(driver, 2)
    driver.run()
    assert _racks(driver) == {"r1"}


def test_a_pending_gang_goes_in_when_a_domain_has_been_freed() -> None:
    driver = _driver(("r1", 2), ("r2", 2))
    for number, node in enumerate(("r1-0", "r2-0")):
        driver.show(make_pod(f"old-{number}", cpu="2", node=node))
    _gang(driver, 4)
    driver.run(2)
    assert driver.bound("p-0") == []
    driver.delete("old-1")
    driver.run(12)
    assert _racks(driver) == {"r2"}
    assert len(driver.bound()) == 5


def test_a_gang_goes_into_a_domain_that_had_no_room_when_it_has() -> None:
    """The only domain with room is behind a taint; of the other, only the room matters."""
    driver = _driver(("r1", 2))
    taint = Taint("k", "", "NoSchedule")
    driver.add_nodes("r2-0", cpu="8", labels={"rack": "r2"}, taints=[taint])
    driver.show(make_pod("old", cpu="2", node="r1-0"))
    _gang(driver, 4)
    driver.run(2)
    assert driver.bound("p-0") == []
    driver.delete("old")
    driver.run(12)
    assert _racks(driver) == {"r1"}


def test_a_gang_goes_into_a_domain_that_gets_a_node_by_its_label() -> None:
    driver = _driver(("r1", 1))
    driver.add_nodes("bare", cpu="2")
    driver.show(make_pod("old", cpu="2", node="r1-0"))
    _gang(driver, 2)
    driver.run(2)
    assert driver.bound("p-0") == []
    driver.add_nodes("bare", cpu="2", labels={"rack": "r1"})
    driver.run(12)
    assert {driver.node_of(name) for name in ("p-0", "p-1")} == {"bare"}


def test_of_a_hundred_domains_those_that_cannot_be_better_are_not_tried() -> None:
    """The fullest of those with enough room wins; none of the others can be."""
    driver = _driver(*((f"r{number}", 2) for number in range(100)))
    driver.show(make_pod("old-0", cpu="2", node="r1-0"))
    driver.show(make_pod("old-1", cpu="2", node="r1-1"))
    driver.show(make_pod("old-2", cpu="1", node="r2-0"))
    _gang(driver, 3)
    driver.run()
    assert _racks(driver) == {"r2"}
    assert _num_filtered(driver) == 200 + 3 * 2  # all nodes once, then those of one domain


def test_domains_whose_nodes_take_no_member_are_not_tried() -> None:
    driver = _driver(("r1", 2))
    taint = Taint("k", "", "NoSchedule")
    for number in range(100):
        names = (f"full-{number}-0", f"full-{number}-1")
        rack = {"rack": f"full-{number}"}
        driver.add_nodes(*names, cpu="2", memory="1Gi", labels=rack, taints=[taint])
    _gang(driver, 2)
    driver.run()
    assert _racks(driver) == {"r1"}
    assert _num_filtered(driver) == 202 + 2 * 2


def test_what_the_volume_of_one_member_asks_for_does_not_hold_for_the_others() -> None:
    driver = _driver(("r1", 1), ("r2", 2))
    objects = (
        storage.make_class("local", provisioner="kubernetes.io/no-provisioner"),
        storage.make_claim("p-0", "local", volume="disk"),
        storage.make_volume("disk", "local", given_to="p-0", where=("rack", ["r1"])),
    )
    driver.handle(*(StorageSeen(each) for each in objects))
    driver.show_group(make_group(min_count=2, topology="rack"))
    driver.create_members("p-0", cpu="2", volumes=(storage.claim_volume("p-0"),))
    driver.create_members("p-1", "p-2", cpu="2")
    driver.run()
    assert driver.bound() == ["p-1", "p-2"]
    assert _racks(driver) == {"r2"}


def test_a_claim_whose_devices_keep_the_members_from_the_domain_with_room_is_deallocated() -> None:
    driver = _driver(("r1", 1), ("r2", 2))
    claim = allocated(make_claim("c"), "r1-0", "gpu-0")
    assert claim.status.allocation is not None
    only_there = storage.affinity_to("rack", ["r1"]).required
    allocation = replace(claim.status.allocation, node_selector=only_there)
    claim = replace(claim, status=replace(claim.status, allocation=allocation))
    driver.handle(DeviceObjectSeen(make_class()), DeviceObjectSeen(claim))
    _show_members_with_claims(driver, "c", "c", cpu="2")
    driver.run()
    assert [each.claim.name for each in driver.take(DeallocateClaim)] == ["c", "c"]


def test_a_node_that_takes_a_member_once_a_companion_has_their_claim_counts_as_room() -> None:
    """All devices that r2-1 can use are not free, but the one that r2-0 can use is enough."""
    driver = _driver(("r1", 1), ("r2", 2), cpu="1")
    in_r2 = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r2"]}]}
    objects = (
        make_class(),
        make_slice("network", ["shared"], nodeSelector={"nodeSelectorTerms": [in_r2]}),
        make_slice("r1-0", ["own"]),
        make_slice("r2-1", ["own"]),
        allocated(make_claim("other"), "r2-1", "own"),
        make_claim("c", request(allocationMode="All", count=None)),
    )
    driver.handle(*(DeviceObjectSeen(each) for each in objects))
    _show_members_with_claims(driver, "c", "c", cpu="1")
    driver.run()
    assert [each.pod.name for each in driver.take(BindClaims)] == ["p-0", "p-1"]


def test_a_plugin_that_makes_room_is_asked_in_every_domain() -> None:
    asked: list[str] = []

    class Preempts:
        name = "Preempts"

        def post_filter(
            self, state: CycleState, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis
        ) -> tuple[Status, str | None]:
            assert diagnosis.filtered is not None
            (row,) = diagnosis.filtered.asked.rows.tolist()
            asked.append(snapshot.node_names[row])
            return (SUCCESS, "r2-0") if asked[-1] == "r2-0" else (unschedulable("no"), None)

    driver = _driver(("r1", 1), ("r2", 1), plugins=[Preempts()])
    driver.show(make_pod("old-1", cpu="1", node="r1-0"))
    driver.show(make_pod("old-2", cpu="2", node="r2-0"))
    _gang(driver, 1, cpu="2")
    driver.run()
    assert asked == ["r1-0", "r2-0"]
    assert "waiting for preemption" in driver.condition()[2]


def test_a_node_that_takes_no_member_before_another_is_placed_counts_as_room() -> None:
    """The second member may go to r1-0 once the first one is in the other half."""
    driver = GangDriver()
    for name, cpu, half in (
        ("r1-0", "4", "a"),
        ("r1-1", "1", "b"),
        ("r2-0", "4", "a"),
        ("r2-1", "4", "b"),
    ):
        driver.add_nodes(name, cpu=cpu, labels={"rack": name[:2], "half": half})
    labels = {"app": "gang"}
    driver.show(make_pod("old", cpu="1", node="r1-0", labels=labels))
    spread = TopologySpreadConstraint(1, "half", "DoNotSchedule", label_selector(labels))
    _gang(driver, 2, labels=labels, topology_spread_constraints=(spread,))
    driver.run()
    assert _racks(driver) == {"r1"}


def test_of_equal_domains_the_one_that_leaves_least_fragments_is_taken() -> None:
    """Both racks end up equally full; r1 has two nodes that are used in part, r2 only one."""
    driver = _driver(("r1", 3), ("r2", 3), cpu="4")
    for number, (node, cpu) in enumerate((("r1-0", "1"), ("r1-1", "1"), ("r2-0", "2"))):
        driver.show(make_pod(f"old-{number}", cpu=cpu, memory="0", node=node))
    _gang(driver, 1, cpu="4")
    driver.run()
    assert _racks(driver) == {"r2"}


def test_without_the_plugin_equal_domains_are_left_to_chance() -> None:
    off = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"disabled": [{"name": "PlacementFragmentation"}]}},
    }
    for choice in (0, 1):
        driver = GangDriver(choose=_chooser(choice), profile=off)
        for rack in ("r1", "r2"):
            driver.add_nodes(f"{rack}-0", cpu="4", labels={"rack": rack})
        _gang(driver, 1)
        driver.run()
        assert _racks(driver) == {f"r{choice + 1}"}


def test_one_best_domain_leaves_nothing_to_chance() -> None:
    def choose(num_ties: int) -> int:
        raise AssertionError(f"a tie of {num_ties} was broken")

    driver = _driver(("r1", 1), choose=choose)
    driver.add_nodes("r2-0", cpu="4", memory="2Gi", labels={"rack": "r2"})
    _gang(driver, 1, cpu="2")
    driver.run()
    assert _racks(driver) == {"r1"}


def test_a_plugin_that_cannot_rank_domains_is_an_error_of_the_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_args: object) -> None:
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr(PlacementFragmentation, "rank_placements", fail)
    driver = _driver(("r1", 2), ("r2", 2))
    driver.show(make_pod("old-0", cpu="1", memory="0", node="r1-0"))
    driver.show(make_pod("old-1", cpu="500m", memory="0", node="r2-0"))
    driver.show(make_pod("old-2", cpu="500m", memory="0", node="r2-1"))
    _gang(driver, 1)
    driver.schedule()
    (failed,) = [each for each in driver.take(PatchPodStatus) if each.reason]
    text = "running PlacementScore plugins: the disk is on fire"
    assert (failed.reason, failed.message) == ("SchedulerError", text)
    assert driver.engine.cache_counts()["assumed_pods"] == 0


@pytest.mark.parametrize("gate", ["true", "false"])
def test_the_gate_words_the_condition_of_a_group_without_a_key(gate: str) -> None:
    gates = f"GenericWorkload=true,TopologyAwareWorkloadScheduling={gate}"
    driver = GangDriver(gates=parse_feature_gates([gates]))
    driver.add_nodes("a", cpu="1")
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1")
    driver.run()
    text = "pod group is unschedulable"
    if gate == "true":
        text = f"0/1 placements are available, first placement status: {text}"
    assert driver.condition() == ("False", "Unschedulable", text)


def test_with_the_gate_set_to_false_a_topology_key_is_ignored() -> None:
    gates = parse_feature_gates(["TopologyAwareWorkloadScheduling=false"])
    driver = _driver(("r1", 1), ("r2", 1), gates=gates)
    _gang(driver, 4)
    driver.run()
    assert _racks(driver) == {"r1", "r2"}


def test_members_that_are_placed_again_in_the_best_domain_take_different_devices() -> None:
    driver = GangDriver()
    for rack in ("r1", "r2"):
        driver.add_nodes(
            rack, cpu="2", labels={"rack": rack}, allocatable={f"example.com/{rack}": 1}
        )
    objects: list[DeviceObject] = [
        make_class(),
        *(make_slice(name, ["gpu-0", "gpu-1"]) for name in ("r1", "r2")),
    ]
    objects += [make_claim(f"c{number}") for number in range(2)]
    driver.handle(*(DeviceObjectSeen(each) for each in objects))
    _show_members_with_claims(driver, "c0", "c1", cpu="1")
    driver.run()
    allocations = [claim.allocation for each in driver.take(BindClaims) for claim in each.claims]
    taken = [(r.pool, r.device) for each in allocations if each for r in each.devices.results]
    assert taken == [("r1", "gpu-0"), ("r1", "gpu-1")]


def test_members_that_are_placed_again_keep_their_volumes_from_other_pods() -> None:
    driver = GangDriver()
    for rack in ("r1", "r2"):
        driver.add_nodes(
            rack, cpu="2", labels={"rack": rack}, allocatable={f"example.com/{rack}": 1}
        )
    objects = (
        storage.make_class("local", provisioner="kubernetes.io/no-provisioner"),
        storage.make_class("made"),
        storage.make_claim("p-0", "local"),
        storage.make_claim("p-1", "made"),
        storage.make_claim("other", "local"),
        storage.make_volume("disk", "local", where=(HOSTNAME, ["r1", "r2"])),
    )
    driver.handle(*(StorageSeen(each) for each in objects))
    driver.show_group(make_group(min_count=2, topology="rack"))
    for name in ("p-0", "p-1"):
        driver.create_members(name, volumes=(storage.claim_volume(name),))
    driver.create_pods("other", volumes=(storage.claim_volume("other"),))
    driver.run()
    assert [each.pod.name for each in driver.take(BindVolumes)] == ["p-0", "p-1"]
    assert driver.engine.dump()["storage_assumed"] == {
        "volume disk": "default/p-0",
        "claim default/p-1": "default/p-1",
    }


def test_a_bound_member_on_a_node_without_the_label_is_an_error_that_names_it() -> None:
    driver = _driver(("r1", 2))
    driver.add_nodes("bare", cpu="2")
    driver.show_group(make_group(min_count=1, topology="rack"))
    driver.create_members("p-0", node="bare")
    driver.create_members("p-1")
    driver.run()
    text = (
        "cannot determine domain for already scheduled pods: "
        "no topology domain found for pod default/p-0"
    )
    assert driver.condition() == ("False", "SchedulerError", text)
    assert driver.bound("p-1") == []


def test_a_bound_member_on_an_unknown_node_is_an_error_that_names_it() -> None:
    driver = _driver(("r1", 2))
    driver.show_group(make_group(min_count=1, topology="rack"))
    driver.create_members("p-0", node="unknown")
    driver.create_members("p-1")
    driver.run()
    assert driver.condition()[2] == (
        "cannot determine domain for already scheduled pods: getting node for pod default/p-0: "
        'nodeinfo not found for node name "unknown"'
    )


def test_a_topology_key_is_named_before_workload_aware_preemption_as_what_bars_a_member() -> None:
    driver = _driver(("r1", 1), gates=_gates("WorkloadAwarePreemption"))
    driver.show(make_pod("low", cpu="2", node="r1-0", priority=-10))
    _gang(driver, 1)
    driver.run()
    (patch,) = driver.take(PatchPodStatus)
    assert patch.message.endswith(BARRED)


def test_with_the_gate_constraints_without_a_key_keep_members_from_preempting() -> None:
    driver = _driver(("r1", 1), gates=_gates())
    driver.show(make_pod("low", cpu="2", node="r1-0", priority=-10))
    driver.show_group(
        make_group(min_count=1, scheduling_constraints=PodGroupSchedulingConstraints())
    )
    driver.create_members("p-0")
    driver.run(5)
    assert driver.evicted == []
    (patch,) = driver.take(PatchPodStatus)
    assert patch.message.endswith(BARRED)


def test_with_the_gate_members_that_nothing_holds_fail_until_their_group_is_there() -> None:
    driver = _driver(("r1", 1), ("r2", 2), gates=_gates(gangs="false"))
    driver.create_members("p-0", "p-1", "p-2")
    driver.run()
    messages = {each.reason: each.message for each in driver.take(PatchPodStatus)}
    assert messages == {"SchedulerError": 'podgroup.scheduling.k8s.io "g" not found'}
    driver.show_group(make_group(topology="rack"))
    driver.run(5)
    assert _racks(driver) == {"r2"}
