"""Members of a gang whose plugins fail or reject them at each extension point."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from stowage.api.instructions import AttemptResult, BindPod, PodGroupAttemptResult
from stowage.framework.authoring import (
    ACCEPT_ALL,
    SUCCESS,
    CycleState,
    FilterVerdict,
    NodeView,
    PodInfo,
    Status,
    error,
    unschedulable,
)
from tests.stories.gang_driver import GangDriver, make_group


@dataclass
class Stops:
    """Raises, or answers a status, about one pod at one extension point.

    The first `passes` times it lets the pod pass.
    """

    point: str
    answer: Status | None = None
    pod: str = "p-1"
    passes: int = 0
    name: str = "Stops"

    def _about(self, point: str, pod: PodInfo) -> Status:
        if point != self.point or pod.name != self.pod:
            return SUCCESS
        if self.passes:
            self.passes -= 1
            return SUCCESS
        if self.answer is None:
            raise RuntimeError("the disk is on fire")
        return self.answer

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        self._about("filter", pod)
        return ACCEPT_ALL

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return self._about("reserve", pod)

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        return self._about("permit", pod), 0.0


def _attempted(plugin: Stops, min_count: int = 3) -> GangDriver:
    """A gang of three of which one is stopped; there is room for all."""
    driver = GangDriver(plugins=[plugin])
    driver.add_nodes("a", cpu="8")
    driver.show_group(make_group(min_count=min_count))
    driver.create_members("p-0", "p-1", "p-2")
    driver.schedule(10)
    driver.engine.validate()
    return driver


FAULTS = {
    'running "Stops" filter plugin: the disk is on fire': Stops("filter"),
    'running Reserve plugin "Stops": the disk is on fire': Stops("reserve"),
    'running Reserve plugin "Stops": no connection': Stops("reserve", error("no connection")),
    'running Permit plugin "Stops": the disk is on fire': Stops("permit"),
    'running Permit plugin "Stops": no connection': Stops("permit", error("no connection")),
}


@pytest.mark.parametrize("text", FAULTS)
def test_an_error_about_one_member_is_an_error_of_the_whole_group(text: str) -> None:
    plugin = replace(FAULTS[text])
    driver = _attempted(plugin)
    assert driver.take(BindPod) == []
    group_text = f"failed to schedule other pod from a pod group: {text}"
    (result,) = driver.take(PodGroupAttemptResult)
    assert (result.result, result.message) == ("error", group_text)
    assert driver.condition() == ("False", "SchedulerError", group_text)
    assert driver.take_messages() == {"p-0": group_text, "p-1": text, "p-2": group_text}
    results = driver.take(AttemptResult)
    assert [each.result for each in results] == ["error"] * 3
    assert len({each.configuration for each in results}) == 1
    plugin.point = ""
    driver.run(60)
    assert driver.bound() == ["p-0", "p-1", "p-2"]


@pytest.mark.parametrize("point", ["reserve", "permit"])
def test_a_rejected_member_keeps_a_gang_waiting_that_needs_it(point: str) -> None:
    driver = _attempted(Stops(point, unschedulable("not today")))
    assert driver.take(BindPod) == []
    (result,) = driver.take(PodGroupAttemptResult)
    assert (result.result, result.num_fitting) == ("unschedulable", 2)
    assert set(driver.take_messages()) == {"p-0", "p-1", "p-2"}


@pytest.mark.parametrize("point", ["reserve", "permit"])
def test_a_rejected_member_has_its_own_reason_when_the_others_are_bound(point: str) -> None:
    driver = _attempted(Stops(point, unschedulable("not today")), min_count=2)
    assert driver.bound() == ["p-0", "p-2"]
    assert driver.take_messages() == {"p-1": "0/1 nodes are available: 1 not today."}
    results = {each.pod.name: each.result for each in driver.take(AttemptResult)}
    assert results == {"p-0": "scheduled", "p-1": "unschedulable", "p-2": "scheduled"}


@pytest.mark.parametrize("rejected", ["p-0", "p-1", "p-2"])
def test_a_member_that_permit_rejects_at_last_is_tried_again_for_those_who_wait_for_it(
    rejected: str,
) -> None:
    driver = _attempted(Stops("permit", unschedulable("not today"), pod=rejected, passes=1))
    results = [each.result for each in driver.take(AttemptResult) if each.pod.name == rejected]
    assert results == ["scheduled", "unschedulable", "unschedulable"]
    waiting = [each.pod.name for each in driver.engine.waiting_pods()]
    assert waiting == [name for name in ("p-0", "p-1", "p-2") if name != rejected]
    assert driver.bound() == []
    driver.run(310)
    assert driver.engine.waiting_pods() == []


def test_enough_members_are_bound_although_permit_rejects_one_at_last() -> None:
    driver = _attempted(
        Stops("permit", unschedulable("not today"), pod="p-2", passes=1), min_count=2
    )
    assert driver.bound() == ["p-0", "p-1"]


def test_an_error_about_a_member_that_its_gang_does_not_need_is_an_error_of_all() -> None:
    driver = _attempted(Stops("filter"), min_count=2)
    assert driver.take(BindPod) == []
    assert driver.condition()[:2] == ("False", "SchedulerError")


def test_members_that_an_error_leaves_untried_have_results_of_the_same_configuration() -> None:
    driver = _attempted(Stops("filter", pod="p-2"))
    results = driver.take(AttemptResult)
    assert {each.pod.name: each.result for each in results} == dict.fromkeys(
        ("p-0", "p-1", "p-2"), "error"
    )
    assert {each.configuration for each in results} == {driver.engine.state.configuration}


def test_what_helps_one_member_may_help_the_others() -> None:
    driver = GangDriver(plugins=[Stops("reserve", unschedulable("not yet"), pod="p-0")])
    driver.add_nodes("a", cpu="1")
    driver.show_group(make_group(min_count=1))
    driver.create_members("p-0", cpu="1")
    driver.create_members("p-1", cpu="2")
    driver.schedule(10)
    rejected = {plugin: n for (_, plugin), n in driver.engine.unschedulable_counts().items()}
    assert rejected == {"Stops": 2, "NodeResourcesFit": 2}


def test_members_that_were_not_tried_because_of_an_error_back_off() -> None:
    driver = GangDriver(plugins=[Stops("filter", pod="p-1")])
    driver.add_nodes("a", cpu="1")
    driver.show_group(make_group(min_count=1))
    driver.create_members("p-0", cpu="2")
    driver.create_members("p-1", "p-2", cpu="1")
    driver.schedule(10)
    assert {name: driver.queue_of(name) for name in ("p-1", "p-2")} == {
        "p-1": "backoff",
        "p-2": "backoff",
    }
