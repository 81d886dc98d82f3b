"""The pod that completes a gang brings its waiting members back."""

from __future__ import annotations

from tests.stories.gang_driver import GangDriver, make_group, make_member


def test_a_member_that_another_scheduler_has_placed_completes_the_gang() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0")
    driver.run()
    assert driver.bound("p-0") == []
    driver.show(make_member("p-1", node="a"))
    driver.run()
    assert driver.bound("p-0") == ["p-0"]


def test_a_surplus_member_without_room_waits_for_an_event() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="2")
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1", "p-2")
    driver.schedule(10)
    assert driver.bound() == ["p-0", "p-1"]
    assert driver.queue_of("p-2") == "unschedulable"
