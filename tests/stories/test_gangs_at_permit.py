"""Members that are scheduled one by one wait for their companions at Permit."""

from __future__ import annotations

from typing import Any

from stowage.api.config.extenders import Extenders
from stowage.api.config.types import Extender
from stowage.api.events import ExtendersAnswered
from stowage.api.instructions import ConsultExtenders
from stowage.framework import Timings
from tests.stories.gang_driver import GangDriver, make_group
from tests.support.durations import Unobserved


def _scheduled_one_by_one() -> GangDriver:
    """A driver with an extender that filters: its round trips keep members apart."""
    extender = Extender(url_prefix="http://picky", filter_verb="filter")
    driver = GangDriver(extenders=Extenders((extender,), 16))
    driver.add_nodes("a", cpu="2")
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1")
    driver.schedule(1)
    return driver


def _answer(driver: GangDriver) -> None:
    """Let the extender accept all nodes it was asked about."""
    for asked in driver.take(ConsultExtenders):
        driver.handle(ExtendersAnswered(asked.pod.uid, asked.number, asked.node_names))
        driver.schedule(1)


def test_members_that_need_extenders_wait_for_each_other_at_permit() -> None:
    driver = _scheduled_one_by_one()
    _answer(driver)
    assert [each.pod.name for each in driver.engine.waiting_pods()] == ["p-0"]
    assert driver.bound() == []
    driver.schedule(1)
    _answer(driver)
    assert driver.bound() == ["p-0", "p-1"]


def test_the_wait_of_a_member_for_its_companions_is_measured() -> None:
    class PermitWaits(Unobserved):
        def observe_permit_wait(self, *durations: Any) -> None:
            observed.append(durations)

    observed: list[tuple[Any, ...]] = []
    driver = _scheduled_one_by_one()
    driver.engine.take_durations(Timings(lambda: 0.0, PermitWaits()))
    _answer(driver)
    driver.advance(7.0)
    driver.schedule(1)
    _answer(driver)
    assert driver.bound() == ["p-0", "p-1"]
    assert observed == [("Success", 7.0)]


def test_a_member_whose_companions_do_not_come_gives_its_place_back_after_five_minutes() -> None:
    driver = _scheduled_one_by_one()
    _answer(driver)
    driver.delete("p-1")
    driver.advance(299.0)
    assert driver.engine.cache_counts()["assumed_pods"] == 1
    driver.advance(1.0)
    assert driver.engine.cache_counts()["assumed_pods"] == 0
    text = "rejected due to timeout after waiting 5m0s at plugin GangScheduling"
    assert text in driver.take_messages()["p-0"]
