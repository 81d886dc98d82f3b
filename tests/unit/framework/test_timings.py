"""Durations of extension points and plugins in sampled cycles."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest

from stowage.api.status import SKIP, SUCCESS, Status, unschedulable
from stowage.framework import CycleState, PluginTraits, PreFilterOutcome, Timings
from stowage.framework.timings import code_of
from stowage.state import ClusterCache, PodInfo, make_pod_info
from tests.support.builders import make_pod
from tests.support.plugins.small_plugins import framework_of


class RecordedDurations:
    def __init__(self) -> None:
        self.points: list[tuple[str, str, str, float]] = []
        self.plugins: list[tuple[str, str, str, float]] = []
        self.waits: list[tuple[str, float]] = []

    def observe_extension_point(
        self, point: str, status: str, profile: str, duration_s: float
    ) -> None:
        self.points.append((point, status, profile, duration_s))

    def observe_plugin(self, plugin: str, point: str, status: str, duration_s: float) -> None:
        self.plugins.append((plugin, point, status, duration_s))

    def observe_event(self, event: str, duration_s: float) -> None:
        raise AssertionError("the engine observes events")

    def observe_hint(self, plugin: str, event: str, hint: str, duration_s: float) -> None:
        raise AssertionError("the queue observes hints")

    def observe_permit_wait(self, result: str, duration_s: float) -> None:
        self.waits.append((result, duration_s))


def _timings(observed: RecordedDurations, one_in: int = 10) -> Timings:
    seconds = count()
    return Timings(lambda: float(next(seconds)), observed, one_in)


def test_the_first_cycle_is_sampled_and_then_one_in_ten() -> None:
    timings = _timings(RecordedDurations())
    assert [number for number in range(25) if timings.is_sampled()] == [0, 10, 20]


def test_every_cycle_can_be_sampled() -> None:
    timings = _timings(RecordedDurations(), one_in=1)
    assert all(timings.is_sampled() for _ in range(5))


def test_a_traced_cycle_is_observed_by_its_trace_alone() -> None:
    observed, traced = RecordedDurations(), RecordedDurations()
    seconds = count()
    timings = Timings(
        lambda: float(next(seconds)),
        observed,
        one_in=3,
        trace_cycle=lambda uid: traced if uid == "traced" else None,
    )
    cycles = [timings.of_cycle(uid) for uid in ("a", "traced", "b", "traced", "c")]
    assert [each is not None for each in cycles] == [True, True, False, True, False]
    assert [each.observer for each in cycles if each is not None] == [observed, traced, traced]


@pytest.mark.parametrize(
    ("answer", "status"),
    [(unschedulable("no"), "Unschedulable"), (SKIP, "Skip"), (3, "Success")],
)
def test_a_plugin_is_timed_with_its_status(answer: Status | int, status: str) -> None:
    observed = RecordedDurations()
    timed = _timings(observed).of_plugin("P", "PreScore", lambda _pod: answer)
    assert timed("pod") is answer
    assert observed.plugins == [("P", "PreScore", status, 1.0)]


def test_a_plugin_that_raises_counts_as_an_error() -> None:
    observed = RecordedDurations()

    def fail() -> None:
        raise RuntimeError("oops")

    with pytest.raises(RuntimeError, match="oops"):
        _timings(observed).of_plugin("P", "Filter", fail)()
    assert observed.plugins == [("P", "Filter", "Error", 1.0)]


def test_an_extension_point_is_timed_with_the_status_in_its_outcome() -> None:
    observed = RecordedDurations()
    outcome = PreFilterOutcome(unschedulable("no"))
    timed = _timings(observed).of_point("PreFilter", "test", lambda: outcome, code_of)
    assert timed() is outcome
    assert observed.points == [("PreFilter", "Unschedulable", "test", 1.0)]


class PreBindWork:
    name = "PreBindWork"
    pre_flight = SUCCESS
    traits = PluginTraits()

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return self.pre_flight

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return unschedulable("no seal")


def test_a_pre_bind_plugin_is_timed_with_its_status_although_it_is_a_coroutine() -> None:
    observed = RecordedDurations()
    framework, state = framework_of(PreBindWork()), CycleState(_timings(observed))
    pod = make_pod_info(make_pod("p"), ClusterCache().classes)
    plan = framework.plan_pre_bind(state, pod, "n0")
    assert asyncio.run(framework.run_pre_bind(state, pod, "n0", plan.plugins)).is_rejected
    assert observed.plugins == [
        ("PreBindWork", "PreBindPreFlight", "Success", 1.0),
        ("PreBindWork", "PreBind", "Unschedulable", 1.0),
    ]


def test_a_timed_pre_bind_is_given_the_pod_and_its_node() -> None:
    class Notes(PreBindWork):
        given: tuple[object, ...] = ()

        async def pre_bind(self, *given: Any) -> Status:
            self.given = given
            return SUCCESS

    plugin, state = Notes(), CycleState(_timings(RecordedDurations()))
    pod = make_pod_info(make_pod("p"), ClusterCache().classes)
    asyncio.run(framework_of(plugin).run_pre_bind(state, pod, "n0", (plugin.name,)))
    assert plugin.given == (state, pod, "n0")


def test_a_pre_flight_after_which_no_plugin_has_work_counts_as_skip() -> None:
    observed, plugin = RecordedDurations(), PreBindWork()
    plugin.pre_flight = SKIP
    pod = make_pod_info(make_pod("p"), ClusterCache().classes)
    framework_of(plugin).plan_pre_bind(CycleState(_timings(observed)), pod, "n0")
    assert observed.plugins == [("PreBindWork", "PreBindPreFlight", "Skip", 1.0)]
    assert observed.points == [("PreBindPreFlight", "Skip", "test", 3.0)]
