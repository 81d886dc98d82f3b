"""What keeps a pod group from a domain, and what its conditions say about it."""

from __future__ import annotations

import pytest

from stowage.api.config.feature_gates import FeatureGates, parse_feature_gates
from stowage.api.instructions import PatchPodStatus
from stowage.api.objects.pod_groups import PodGroupSchedulingConstraints
from stowage.plugins.placement_fragmentation import PlacementFragmentation
from tests.stories.gang_driver import GangDriver, make_group
from tests.stories.gang_racks import BARRED, driver_of_racks, racks_of, show_gang
from tests.support.builders import make_pod


def _gates(*names: str, gangs: str = "true") -> FeatureGates:
    """The gates of topology-aware scheduling, and these."""
    on = ("GenericWorkload", "TopologyAwareWorkloadScheduling", *names)
    return parse_feature_gates([*(f"{name}=true" for name in on), f"GangScheduling={gangs}"])


def test_bound_members_in_two_domains_are_an_error() -> None:
    driver = driver_of_racks(("r1", 1), ("r2", 1))
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


def test_a_plugin_that_cannot_rank_domains_is_an_error_of_the_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_args: object) -> None:
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr(PlacementFragmentation, "rank_placements", fail)
    driver = driver_of_racks(("r1", 2), ("r2", 2))
    driver.show(make_pod("old-0", cpu="1", memory="0", node="r1-0"))
    driver.show(make_pod("old-1", cpu="500m", memory="0", node="r2-0"))
    driver.show(make_pod("old-2", cpu="500m", memory="0", node="r2-1"))
    show_gang(driver, 1)
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
    driver = driver_of_racks(("r1", 1), ("r2", 1), gates=gates)
    show_gang(driver, 4)
    driver.run()
    assert racks_of(driver) == {"r1", "r2"}


def test_a_bound_member_on_a_node_without_the_label_is_an_error_that_names_it() -> None:
    driver = driver_of_racks(("r1", 2))
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
    driver = driver_of_racks(("r1", 2))
    driver.show_group(make_group(min_count=1, topology="rack"))
    driver.create_members("p-0", node="unknown")
    driver.create_members("p-1")
    driver.run()
    assert driver.condition()[2] == (
        "cannot determine domain for already scheduled pods: getting node for pod default/p-0: "
        'nodeinfo not found for node name "unknown"'
    )


def test_a_topology_key_is_named_before_workload_aware_preemption_as_what_bars_a_member() -> None:
    driver = driver_of_racks(("r1", 1), gates=_gates("WorkloadAwarePreemption"))
    driver.show(make_pod("low", cpu="2", node="r1-0", priority=-10))
    show_gang(driver, 1)
    driver.run()
    (patch,) = driver.take(PatchPodStatus)
    assert patch.message.endswith(BARRED)


def test_with_the_gate_constraints_without_a_key_keep_members_from_preempting() -> None:
    driver = driver_of_racks(("r1", 1), gates=_gates())
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
    driver = driver_of_racks(("r1", 1), ("r2", 2), gates=_gates(gangs="false"))
    driver.create_members("p-0", "p-1", "p-2")
    driver.run()
    messages = {each.reason: each.message for each in driver.take(PatchPodStatus)}
    assert messages == {"SchedulerError": 'podgroup.scheduling.k8s.io "g" not found'}
    driver.show_group(make_group(topology="rack"))
    driver.run(5)
    assert racks_of(driver) == {"r2"}
