"""Pod groups with a topology key: one domain for all members, the best of several."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from stowage.api.events import DeviceObjectSeen, StorageSeen
from stowage.api.instructions import BindClaims, BindVolumes, DeallocateClaim, PatchPodStatus
from stowage.api.objects.device import DeviceObject
from stowage.api.objects.node import Taint
from stowage.api.objects.pod import PodSchedulingGroup, TopologySpreadConstraint
from stowage.api.status import SUCCESS, Status, unschedulable
from stowage.framework import CycleState, Diagnosis
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot
from tests.stories.gang_driver import GangDriver, make_group
from tests.stories.gang_racks import BARRED, driver_of_racks, racks_of, show_gang
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


def _num_filtered(driver: GangDriver) -> int:
    """How many nodes NodeResourcesFit was asked about."""
    counts = driver.engine.evaluation_counts()
    return counts["NodeResourcesFit", "Filter", "default-scheduler"]


def _chooser(choice: int) -> Callable[[int], int]:
    return lambda _num_ties: choice


def _show_members_with_claims(driver: GangDriver, *claims: str, cpu: str) -> None:
    driver.show_group(make_group(min_count=len(claims), topology="rack"))
    for number, claim in enumerate(claims):
        group = PodSchedulingGroup("g")
        driver.show(pod_with_claims(f"p-{number}", claim, scheduling_group=group, cpu=cpu))


def test_a_gang_goes_to_the_one_domain_that_holds_all_of_it() -> None:
    driver = driver_of_racks(("r1", 1), ("r2", 2), ("r3", 1))
    show_gang(driver, 4)
    driver.run()
    assert len(driver.bound()) == 4
    assert racks_of(driver) == {"r2"}
    driver.check_replay()


def test_of_two_domains_the_one_that_ends_up_fuller_wins() -> None:
    driver = driver_of_racks(("r1", 3), ("r2", 2))
    show_gang(driver, 3, memory="1Gi")
    driver.run()
    assert len(driver.bound()) == 3
    assert racks_of(driver) == {"r2"}


def test_nodes_without_the_label_are_in_no_domain() -> None:
    driver = GangDriver()
    driver.add_nodes("bare", cpu="8")
    show_gang(driver, 2)
    driver.run()
    assert driver.bound() == []
    assert driver.condition() == ("False", "Unschedulable", "no feasible placements found")
    messages = {each.message for each in driver.take(PatchPodStatus) if each.reason}
    assert messages == {"no feasible placements found"}
    driver.add_nodes("bare", cpu="8", labels={"rack": "r1"})
    driver.run(3)
    assert len(driver.bound()) == 2


def test_a_gang_that_fits_only_across_domains_does_not_fit_and_may_not_preempt() -> None:
    driver = driver_of_racks(("r1", 1), ("r2", 1))
    driver.show(make_pod("low", cpu="1", node="r2-0", priority=-10))
    show_gang(driver, 3)
    driver.run()
    assert driver.bound() == ["low"]
    text = "0/2 placements are available, first placement status: pod group is unschedulable"
    assert driver.condition() == ("False", "Unschedulable", text)
    own = f"0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, {BARRED}"
    messages = [each.message for each in driver.take(PatchPodStatus) if each.reason]
    assert messages.count(own) == 1
    assert driver.evicted == []


def test_a_late_member_joins_the_domain_of_the_bound_ones_however_roomy_another_is() -> None:
    driver = driver_of_racks(("r1", 1), ("r2", 1))
    show_gang(driver, 2)
    driver.run()
    rack = racks_of(driver)
    driver.create_members("p-late")
    driver.run(5)
    assert driver.bound("p-late") == []
    driver.add_nodes(f"{rack.pop()}-9", cpu="1", labels={"rack": driver.node_of("p-0")[:2]})
    driver.run(12)
    assert driver.node_of("p-late").endswith("-9")


def test_a_member_that_is_bound_elsewhere_leaves_its_nominated_node_to_others() -> None:
    driver = driver_of_racks(("r1", 1), ("r2", 2), ("r3", 2))
    driver.show(make_pod("first", cpu="2", node_selector={"rack": "r1"}))
    show_gang(driver, 2, cpu="2", nominated_node="r1-0")
    driver.run()
    assert racks_of(driver) in ({"r2"}, {"r3"})
    assert driver.node_of("first") == "r1-0"


def test_a_domain_behind_a_taint_counts_only_for_gangs_that_tolerate_it() -> None:
    driver = driver_of_racks(("r1", 1))
    driver.add_nodes("r2-0", cpu="8", labels={"rack": "r2"}, taints=[Taint("k", "", "NoSchedule")])
    show_gang(driver, 2)
    driver.run()
    assert racks_of(driver) == {"r1"}


def test_a_pending_gang_goes_in_when_a_domain_has_been_freed() -> None:
    driver = driver_of_racks(("r1", 2), ("r2", 2))
    for number, node in enumerate(("r1-0", "r2-0")):
        driver.show(make_pod(f"old-{number}", cpu="2", node=node))
    show_gang(driver, 4)
    driver.run(2)
    assert driver.bound("p-0") == []
    driver.delete("old-1")
    driver.run(12)
    assert racks_of(driver) == {"r2"}
    assert len(driver.bound()) == 5


def test_a_gang_goes_into_a_domain_that_had_no_room_when_it_has() -> None:
    """The only domain with room is behind a taint; of the other, only the room matters."""
    driver = driver_of_racks(("r1", 2))
    taint = Taint("k", "", "NoSchedule")
    driver.add_nodes("r2-0", cpu="8", labels={"rack": "r2"}, taints=[taint])
    driver.show(make_pod("old", cpu="2", node="r1-0"))
    show_gang(driver, 4)
    driver.run(2)
    assert driver.bound("p-0") == []
    driver.delete("old")
    driver.run(12)
    assert racks_of(driver) == {"r1"}


def test_a_gang_goes_into_a_domain_that_gets_a_node_by_its_label() -> None:
    driver = driver_of_racks(("r1", 1))
    driver.add_nodes("bare", cpu="2")
    driver.show(make_pod("old", cpu="2", node="r1-0"))
    show_gang(driver, 2)
    driver.run(2)
    assert driver.bound("p-0") == []
    driver.add_nodes("bare", cpu="2", labels={"rack": "r1"})
    driver.run(12)
    assert {driver.node_of(name) for name in ("p-0", "p-1")} == {"bare"}


def test_of_a_hundred_domains_those_that_cannot_be_better_are_not_tried() -> None:
    """The fullest of those with enough room wins; none of the others can be."""
    driver = driver_of_racks(*((f"r{number}", 2) for number in range(100)))
    driver.show(make_pod("old-0", cpu="2", node="r1-0"))
    driver.show(make_pod("old-1", cpu="2", node="r1-1"))
    driver.show(make_pod("old-2", cpu="1", node="r2-0"))
    show_gang(driver, 3)
    driver.run()
    assert racks_of(driver) == {"r2"}
    assert _num_filtered(driver) == 200 + 3 * 2  # all nodes once, then those of one domain


def test_domains_whose_nodes_take_no_member_are_not_tried() -> None:
    driver = driver_of_racks(("r1", 2))
    taint = Taint("k", "", "NoSchedule")
    for number in range(100):
        names = (f"full-{number}-0", f"full-{number}-1")
        rack = {"rack": f"full-{number}"}
        driver.add_nodes(*names, cpu="2", memory="1Gi", labels=rack, taints=[taint])
    show_gang(driver, 2)
    driver.run()
    assert racks_of(driver) == {"r1"}
    assert _num_filtered(driver) == 202 + 2 * 2


def test_what_the_volume_of_one_member_asks_for_does_not_hold_for_the_others() -> None:
    driver = driver_of_racks(("r1", 1), ("r2", 2))
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
    assert racks_of(driver) == {"r2"}


def test_a_claim_whose_devices_keep_the_members_from_the_domain_with_room_is_deallocated() -> None:
    driver = driver_of_racks(("r1", 1), ("r2", 2))
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
    driver = driver_of_racks(("r1", 1), ("r2", 2), cpu="1")
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

    driver = driver_of_racks(("r1", 1), ("r2", 1), plugins=[Preempts()])
    driver.show(make_pod("old-1", cpu="1", node="r1-0"))
    driver.show(make_pod("old-2", cpu="2", node="r2-0"))
    show_gang(driver, 1, cpu="2")
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
    show_gang(driver, 2, labels=labels, topology_spread_constraints=(spread,))
    driver.run()
    assert racks_of(driver) == {"r1"}


def test_of_equal_domains_the_one_that_leaves_least_fragments_is_taken() -> None:
    """Both racks end up equally full; r1 has two nodes that are used in part, r2 only one."""
    driver = driver_of_racks(("r1", 3), ("r2", 3), cpu="4")
    for number, (node, cpu) in enumerate((("r1-0", "1"), ("r1-1", "1"), ("r2-0", "2"))):
        driver.show(make_pod(f"old-{number}", cpu=cpu, memory="0", node=node))
    show_gang(driver, 1, cpu="4")
    driver.run()
    assert racks_of(driver) == {"r2"}


def test_without_the_plugin_equal_domains_are_left_to_chance() -> None:
    off = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"disabled": [{"name": "PlacementFragmentation"}]}},
    }
    for choice in (0, 1):
        driver = GangDriver(choose=_chooser(choice), profile=off)
        for rack in ("r1", "r2"):
            driver.add_nodes(f"{rack}-0", cpu="4", labels={"rack": rack})
        show_gang(driver, 1)
        driver.run()
        assert racks_of(driver) == {f"r{choice + 1}"}


def test_one_best_domain_leaves_nothing_to_chance() -> None:
    def choose(num_ties: int) -> int:
        raise AssertionError(f"a tie of {num_ties} was broken")

    driver = driver_of_racks(("r1", 1), choose=choose)
    driver.add_nodes("r2-0", cpu="4", memory="2Gi", labels={"rack": "r2"})
    show_gang(driver, 1, cpu="2")
    driver.run()
    assert racks_of(driver) == {"r1"}


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
