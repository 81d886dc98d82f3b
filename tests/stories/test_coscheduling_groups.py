"""Groups of the coscheduling plugin: a label of a pod names its group."""

from __future__ import annotations

import pytest

from stowage.api.events import PodGroupSeen
from stowage.api.instructions import BindPod, ClearNomination, PatchPodGroupStatus
from stowage.api.objects.pod_groups import COSCHEDULING_GROUPS
from tests.stories.gang_driver import GangDriver, make_group
from tests.support.builders import make_pod


def test_a_group_of_the_coscheduling_plugin_is_a_gang_by_its_label() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.handle(PodGroupSeen(make_group(min_count=2), COSCHEDULING_GROUPS))
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    driver.show(make_pod("p-0", cpu="1", labels=labels))
    driver.run(3)
    assert driver.bound() == []
    driver.show(make_pod("p-1", cpu="1", labels=labels))
    driver.run()
    assert driver.bound() == ["p-0", "p-1"]
    assert driver.take(PatchPodGroupStatus) == []


def test_a_waiting_pod_whose_label_changes_may_complete_its_new_group() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.handle(PodGroupSeen(make_group(min_count=2), COSCHEDULING_GROUPS))
    for name, group in (("p-0", "g"), ("p-1", "other"), ("p-1", "g")):
        labels = {"scheduling.x-k8s.io/pod-group": group}
        driver.show(make_pod(name, cpu="1", labels=labels))
    driver.run()
    assert driver.bound() == ["p-0", "p-1"]
    assert driver.engine.incoming_counts()["active", "UnschedulablePodUpdate"] == 2
    driver.check_replay()


def test_members_go_in_when_the_minimum_of_their_coscheduling_group_is_lowered() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.handle(PodGroupSeen(make_group(min_count=3), COSCHEDULING_GROUPS))
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    for name in ("p-0", "p-1"):
        driver.show(make_pod(name, cpu="1", labels=labels))
    driver.run(3)
    assert driver.bound() == []
    driver.handle(PodGroupSeen(make_group(min_count=2), COSCHEDULING_GROUPS))
    driver.run()
    assert driver.bound() == ["p-0", "p-1"]
    counts = driver.engine.state.queue.incoming_counts
    assert counts["active", "scheduling.k8s.io/PodGroupUpdate"] == 2


def _driver_with_group(min_count: int = 2, cpu: str = "4") -> GangDriver:
    driver = GangDriver()
    driver.add_nodes("a", cpu=cpu)
    driver.handle(PodGroupSeen(make_group(min_count=min_count), COSCHEDULING_GROUPS))
    return driver


def _show(driver: GangDriver, name: str, group: str = "g", node: str = "") -> None:
    """Show a pod of a group; without a name of one, it has no label."""
    labels = {"scheduling.x-k8s.io/pod-group": group} if group else {}
    driver.show(make_pod(name, cpu="1", labels=labels, node=node))


@pytest.mark.parametrize("before", ["", "other"])
def test_a_bound_pod_whose_label_changes_completes_its_new_group(before: str) -> None:
    driver = _driver_with_group()
    _show(driver, "b", before, node="a")
    _show(driver, "p")
    driver.run(3)
    assert driver.bound("p") == []
    _show(driver, "b", node="a")
    driver.run(3)
    assert driver.bound("p") == ["p"]
    driver.check_replay()


def test_a_pod_being_bound_whose_label_changes_completes_its_new_group() -> None:
    driver = _driver_with_group()
    driver.holds_bindings = True
    _show(driver, "b", "")
    _show(driver, "p")
    driver.run(3)
    _show(driver, "b")
    driver.run(3)
    assert [each.pod.name for each in driver.take(BindPod)] == ["b", "p"]


def test_a_held_pod_that_loses_its_label_is_an_ordinary_pod() -> None:
    driver = _driver_with_group()
    _show(driver, "p")
    driver.run(3)
    assert driver.bound() == []
    _show(driver, "p", "")
    driver.run(3)
    assert driver.bound() == ["p"]


def test_a_held_pod_whose_label_changes_follows_a_group_that_is_bound_already() -> None:
    driver = _driver_with_group()
    _show(driver, "b-0", node="a")
    _show(driver, "b-1", node="a")
    _show(driver, "p", "other")
    driver.run(3)
    assert driver.bound("p") == []
    _show(driver, "p")
    driver.run(3)
    assert driver.bound("p") == ["p"]


def test_a_member_that_another_scheduler_has_placed_leaves_less_to_be_placed() -> None:
    driver = _driver_with_group(cpu="1")
    _show(driver, "p-0")
    _show(driver, "p-1")
    driver.run(3)
    assert driver.bound() == []
    _show(driver, "b", node="elsewhere")
    driver.run(20)
    assert len(driver.bound("p-0", "p-1")) == 1


def test_a_gang_that_a_label_takes_a_member_from_gives_back_the_room_that_evictions_made() -> None:
    driver = _driver_with_group(cpu="2")
    for name in ("low-0", "low-1"):
        driver.show(make_pod(name, cpu="1", node="a", priority=1))
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    for name in ("p-0", "p-1"):
        driver.show(make_pod(name, cpu="1", labels=labels, priority=100))
    driver.schedule(1)
    assert sorted(driver.evicted) == ["low-0", "low-1"]
    driver.take(ClearNomination)
    driver.show(
        make_pod("p-1", cpu="1", labels={"scheduling.x-k8s.io/pod-group": "other"}, priority=100)
    )
    driver.show(make_pod("heir", cpu="2", priority=100))
    driver.run(15)
    assert [each.pod.name for each in driver.take(ClearNomination)] == ["p-0", "p-1"]
    assert driver.bound("heir") == ["heir"]
