"""Preemption by members of pod groups, each for itself."""

from __future__ import annotations

import pytest

from stowage.api.instructions import ClearNomination, PatchPodStatus, PodGroupAttemptResult
from tests.stories.gang_driver import GangDriver, make_group, make_member
from tests.support.builders import make_pod
from tests.support.engines import DEFAULT_PROFILE

WAITING = "pod group is unschedulable, pod group is waiting for preemption to complete"


def _full_node(num: int, *, priority: int = 1, cpu: str | None = None) -> GangDriver:
    """A driver with a node full of pods ``low-<number>`` of one CPU."""
    driver = GangDriver()
    driver.add_nodes("a", cpu=cpu or str(num))
    for number in range(num):
        driver.show(make_pod(f"low-{number}", cpu="1", node="a", priority=priority))
    return driver


def test_each_member_evicts_for_itself_and_the_gang_is_bound_when_all_victims_are_gone() -> None:
    driver = _full_node(3)
    driver.show_group(make_group(min_count=3))
    driver.create_members("p-0", "p-1", "p-2", priority=100)
    driver.run(12)
    assert sorted(driver.evicted) == ["low-0", "low-1", "low-2"]
    assert driver.bound() == ["p-0", "p-1", "p-2"]
    assert driver.condition() == ("True", "Scheduled", "")
    results = [each.result for each in driver.take(PodGroupAttemptResult)]
    assert (results[0], results[-1]) == ("waiting_on_preemption", "scheduled")
    driver.check_replay()


def test_nothing_is_evicted_for_a_gang_that_does_not_fit_even_then() -> None:
    driver = _full_node(2)
    driver.show_group(make_group(min_count=3))
    driver.create_members("p-0", "p-1", "p-2", priority=100)
    driver.run(30)
    assert driver.evicted == []
    assert driver.condition() == ("False", "Unschedulable", "pod group is unschedulable")
    assert [each for each in driver.take(PatchPodStatus) if each.nominated_node_name] == []


def test_a_gang_evicts_no_pods_of_its_own_priority() -> None:
    driver = _full_node(2, priority=100)
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1", priority=100)
    driver.run(5)
    assert driver.evicted == []
    messages = [each.message for each in driver.take(PatchPodStatus) if each.reason]
    assert len(messages) == 2
    assert all("No preemption victims found for incoming pod" in each for each in messages)


def test_members_of_a_basic_group_evict_like_ordinary_pods() -> None:
    driver = _full_node(2)
    driver.show_group(make_group())
    driver.create_members("p-0", "p-1", priority=100)
    driver.run(12)
    assert sorted(driver.evicted) == ["low-0", "low-1"]
    assert driver.bound() == ["p-0", "p-1"]


def test_a_surplus_member_that_evicts_makes_the_whole_gang_wait() -> None:
    driver = _full_node(1, cpu="3")
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1", "p-2", priority=100)
    driver.schedule(1)
    nominated = [each for each in driver.take(PatchPodStatus) if each.nominated_node_name]
    assert [each.nominated_node_name for each in nominated] == ["a"] * 3
    assert driver.evicted == ["low-0"]
    assert driver.bound() == []
    assert driver.condition() == ("False", "Unschedulable", WAITING)
    driver.run(12)
    assert driver.bound() == ["p-0", "p-1", "p-2"]


def _nominated_gang() -> GangDriver:
    """A driver with a gang of two that has evicted two pods, and an heir of equal priority."""
    driver = _full_node(2)
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1", priority=100)
    driver.schedule(1)
    assert sorted(driver.evicted) == ["low-0", "low-1"]
    driver.take(ClearNomination)
    return driver


def test_a_gang_whose_group_is_deleted_gives_back_the_room_that_evictions_made() -> None:
    driver = _nominated_gang()
    driver.delete_group()
    driver.show(make_pod("heir", cpu="2", priority=100))
    driver.run(15)
    assert sorted(each.pod.name for each in driver.take(ClearNomination)) == ["p-0", "p-1"]
    assert driver.bound() == ["heir"]
    driver.check_replay()


def test_a_gang_is_tried_as_soon_as_its_last_victim_is_gone() -> None:
    """Its members do not wait for the end of their backoff."""
    driver = _full_node(3)
    driver.evict = driver.start_to_leave
    driver.show_group(make_group(min_count=3))
    driver.create_members("p-0", "p-1", "p-2", priority=100)
    driver.run()
    driver.delete("low-0")
    driver.delete("low-1")
    driver.take(PodGroupAttemptResult)
    driver.run()
    assert driver.take(PodGroupAttemptResult) == []
    driver.delete("low-2")
    driver.run()
    assert driver.bound() == ["p-0", "p-1", "p-2"]
    driver.check_replay()


def test_pods_that_counted_on_a_nomination_are_tried_when_an_attempt_of_its_gang_clears_it() -> (
    None
):
    """No event shows it: the nomination was not shown, and another scheduler filled the room."""
    driver = _full_node(2)
    driver.evict = driver.start_to_leave
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1", priority=100)
    driver.schedule(1)
    driver.delete("low-0")
    driver.show(make_pod("heir", cpu="1", priority=100))
    driver.schedule(10)
    assert driver.bound("heir") == []
    driver.show(make_pod("squatter", cpu="1", node="a", priority=100))
    driver.delete("low-1")
    driver.run(15)
    assert driver.bound() == ["heir", "squatter"]
    driver.check_replay()


def test_a_nomination_that_is_shown_after_its_gang_became_too_small_is_given_back() -> None:
    """As a standby sees it: the leader's nomination arrives after the change of the group."""
    driver = GangDriver()
    driver.add_nodes("a", cpu="2")
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1", priority=100)
    driver.show_group(make_group(min_count=3))
    for name in ("p-0", "p-1"):
        driver.show(make_member(name, priority=100, nominated_node="a"))
    driver.show(make_pod("heir", cpu="2", priority=100))
    driver.run(15)
    assert sorted(each.pod.name for each in driver.take(ClearNomination)) == ["p-0", "p-1"]
    assert driver.bound() == ["heir"]


@pytest.mark.parametrize("is_group_shown_first", [True, False])
def test_after_a_restart_a_gang_has_the_room_that_was_made_for_it(
    *, is_group_shown_first: bool
) -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="2")
    if is_group_shown_first:
        driver.show_group(make_group(min_count=2))
    driver.show(make_pod("rival", cpu="1"))
    driver.create_members("p-0", "p-1", nominated_node="a")
    if not is_group_shown_first:
        driver.show_group(make_group(min_count=2))
    driver.run()
    assert driver.bound() == ["p-0", "p-1"]
    driver.check_replay()


def test_a_gang_that_loses_a_member_gives_back_the_room_that_evictions_made() -> None:
    driver = _nominated_gang()
    driver.delete("p-1")
    driver.show(make_pod("heir", cpu="2", priority=100))
    driver.run(15)
    assert [each.pod.name for each in driver.take(ClearNomination)] == ["p-0"]
    assert driver.bound() == ["heir"]
    driver.check_replay()


@pytest.mark.parametrize("are_evictions_over", [True, False])
def test_members_that_no_plugin_holds_keep_their_room_when_their_group_is_deleted(
    *, are_evictions_over: bool
) -> None:
    held_by_none = {"preEnqueue": {"disabled": [{"name": "GangScheduling"}]}}
    driver = GangDriver(profile={**DEFAULT_PROFILE, "plugins": held_by_none})
    driver.add_nodes("a", cpu="1")
    driver.show(make_pod("low", cpu="1", node="a", priority=1))
    driver.show_group(make_group())
    driver.create_members("p", priority=100)
    if not are_evictions_over:
        driver.evict = lambda _eviction: None
    driver.schedule(1)
    assert driver.evicted == (["low"] if are_evictions_over else [])
    driver.take(ClearNomination)
    driver.delete_group()
    assert driver.take(ClearNomination) == []
    assert driver.engine.state.queue.nominator.node_of("uid-p") == "a"
