"""Members and groups that come, go and change while others are bound."""

from __future__ import annotations

from stowage.api.events import BindFailed
from stowage.api.instructions import BindPod, EmitEvent
from tests.stories.gang_driver import GangDriver, make_group, make_member


def test_a_late_member_of_a_bound_gang_goes_in_alone() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="3")
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1")
    driver.run()
    driver.create_members("p-2", "p-3")
    driver.run()
    assert driver.bound() == ["p-0", "p-1", "p-2"]


def test_a_late_member_takes_a_pending_gang_along_without_waiting_for_its_backoff() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="2")
    driver.show_group(make_group(min_count=2))
    driver.create_members("big-0", "p-0", cpu="2")
    driver.run()
    driver.create_members("p-1", cpu="0")
    driver.run()
    assert "p-1" in driver.bound()
    assert len(driver.bound()) == 2


def test_replacements_below_the_minimum_wait_for_each_other() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=3))
    driver.create_members("p-0", "p-1", "p-2")
    driver.run()
    driver.delete("p-0")
    driver.delete("p-1")
    driver.create_members("q-0")
    driver.run(10)
    assert driver.bound() == ["p-2"]
    driver.create_members("q-1")
    driver.run(2)
    assert driver.bound() == ["p-2", "q-0", "q-1"]


def test_a_deleted_member_no_longer_counts_for_the_quorum() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=3))
    driver.create_members("p-0", "p-1")
    driver.delete("p-0")
    driver.create_members("q")
    driver.run(5)
    assert driver.bound() == []
    driver.create_members("r")
    driver.run()
    assert driver.bound() == ["p-1", "q", "r"]


def test_a_group_made_anew_with_a_lower_minimum_releases_its_members() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=5))
    driver.create_members("p-0", "p-1", "p-2")
    driver.delete_group()
    driver.run(5)
    assert driver.bound() == []
    driver.show_group(make_group(min_count=3))
    driver.run()
    assert driver.bound() == ["p-0", "p-1", "p-2"]


def test_bound_members_of_a_deleted_group_count_when_it_is_made_anew() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1")
    driver.run()
    driver.delete_group()
    driver.create_members("p-2")
    driver.run(3)
    assert driver.bound() == ["p-0", "p-1"]
    driver.show_group(make_group(min_count=3))
    driver.run(2)
    assert driver.bound() == ["p-0", "p-1", "p-2"]


def test_a_gated_member_counts_for_the_quorum_and_follows_later() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=2))
    driver.show(make_member("gated", gates=["hold"]))
    driver.create_members("p-0", "p-1")
    driver.run()
    assert driver.bound() == ["p-0", "p-1"]
    driver.show(make_member("gated"))
    driver.run(2)
    assert driver.bound("gated") == ["gated"]


def test_a_member_that_is_being_deleted_drops_out_of_the_attempt() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=2))
    driver.show(make_member("leaving", terminating=True))
    driver.create_members("p-0")
    driver.run()
    assert driver.bound() == []
    notes = [each.note for each in driver.take(EmitEvent)]
    assert "skip schedule deleting pod: default/leaving" in notes


def test_a_binding_that_fails_is_tried_again_alone() -> None:
    driver = GangDriver(holds_bindings=True)
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1")
    driver.schedule()
    first, second = driver.take(BindPod)
    driver.holds_bindings = False
    driver.carry_out([first])
    driver.handle(BindFailed(second.pod.uid, "a", "conflict"))
    driver.run(3)
    assert driver.bound() == ["p-0", "p-1"]


def test_a_new_leader_finishes_a_gang_of_which_some_members_are_bound() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="3")
    driver.show(make_member("p-0", node="a"))
    driver.show_group(make_group(min_count=3))
    driver.create_members("p-1", "p-2")
    driver.run()
    assert driver.bound() == ["p-0", "p-1", "p-2"]
