"""The state is validated in slices, and what is wrong with it is reported."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import cast

import pytest
from structlog.testing import capture_logs

from stowage.api.instructions import ReportProblem
from stowage.engine import Engine
from stowage.operator.metrics.replica_metrics import ReplicaMetrics
from stowage.operator.state_validator import (
    MAX_TEXT,
    PAUSE_S,
    SLICE_S,
    STANDBY_INTERVAL_S,
    StateValidator,
)
from stowage.state import InvariantViolation
from tests.support.fake_api import FakeTime

Step = Callable[[], None]


class _State:
    """An engine whose validation calls these functions, one in each step."""

    def __init__(self, *steps: Step) -> None:
        self.steps = steps
        self.num_validations = 0
        self.is_in_steps = False

    def validation_steps(self) -> Iterator[None]:
        self.num_validations += 1
        for step in self.steps:
            step()
            yield


class _Run:
    def __init__(self, *steps: Step) -> None:
        self.time = FakeTime()
        self.state = _State(*steps)
        self.problems: list[ReportProblem] = []
        self.is_standby = True
        self.validator = StateValidator(
            cast("Engine", self.state),
            self.problems.append,
            lambda: self.is_standby,
            self.time.clock,
        )

    def takes(self, seconds: float) -> Step:
        """A step that takes time."""

        def take_time() -> None:
            self.time.now += seconds

        return take_time

    async def validate(self) -> dict[str, int]:
        await self.validator.validate(lambda: True)
        return {result: count for result, count in self.validator.result_counts().items() if count}


def _raises(error: Exception) -> Step:
    def step() -> None:
        raise error

    return step


async def test_a_consistent_state_is_counted_and_logged() -> None:
    run = _Run()
    run.state.steps = (run.takes(0.0),) * 5
    with capture_logs() as lines:
        assert await run.validate() == {"consistent": 1}
    assert [line["event"] for line in lines] == ["state validated"]
    assert run.problems == []


async def test_the_event_loop_gets_its_turn_after_each_slice() -> None:
    run = _Run()
    run.state.steps = (run.takes(SLICE_S / 2),) * 6
    await run.validate()
    assert run.time.slept == [PAUSE_S] * 3


async def test_no_step_is_taken_while_the_engine_tries_a_pod_group() -> None:
    run, seen = _Run(), list[bool]()
    run.state.is_in_steps = True
    run.state.steps = (lambda: seen.append(run.state.is_in_steps),)

    def end_attempt() -> None:
        run.state.is_in_steps = len(run.time.slept) < 3

    run.time.on_sleep = end_attempt
    assert await run.validate() == {"consistent": 1}
    assert seen == [False]
    assert run.time.slept == [PAUSE_S] * 3


async def test_a_violation_is_a_problem() -> None:
    run = _Run(_raises(InvariantViolation("pods by row", 3, 2)))
    assert await run.validate() == {"inconsistent": 1}
    assert run.problems == [ReportProblem("state", "pods by row: expected 3, found 2")]


async def test_the_metric_counts_the_results() -> None:
    run = _Run(_raises(InvariantViolation("pods by row", 3, 2)))
    await run.validate()
    metrics = ReplicaMetrics(None, lambda: 0, run.validator.result_counts)
    samples = {
        sample.labels["result"]: sample.value
        for family in metrics.collect()
        for sample in family.samples
        if sample.name == "stowage_state_validations_total"
    }
    assert samples == {"consistent": 0.0, "inconsistent": 1.0, "failed": 0.0}


async def test_a_long_violation_is_cut() -> None:
    run = _Run(_raises(InvariantViolation("pods per zone", [0] * 50_000, [])))
    await run.validate()
    assert len(run.problems[0].text) == MAX_TEXT


async def test_an_exception_of_a_check_is_a_problem_too() -> None:
    run = _Run(_raises(KeyError("n1")))
    with capture_logs() as lines:
        assert await run.validate() == {"failed": 1}
    assert run.problems == [ReportProblem("state", "not validated: KeyError('n1')")]
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("state not validated", "error")
    ]


async def test_a_second_signal_starts_no_second_validation() -> None:
    run = _Run()
    run.state.steps = (run.takes(SLICE_S),) * 3
    run.validator.start()
    run.validator.start()
    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
    assert run.state.num_validations == 1
    run.validator.start()
    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
    assert run.state.num_validations == 2


class _EndOfRun(Exception):  # noqa: N818 - not an error
    pass


async def test_a_standby_validates_from_time_to_time() -> None:
    run = _Run()

    def follow() -> None:
        run.is_standby = len(run.time.slept) != 2
        if len(run.time.slept) == 4:
            raise _EndOfRun

    run.time.on_sleep = follow
    with pytest.raises(_EndOfRun):
        await run.validator.run()
    assert run.time.slept == [STANDBY_INTERVAL_S] * 4
    assert run.validator.result_counts()["consistent"] == 2


async def test_a_standby_that_becomes_leader_ends_its_validation() -> None:
    run = _Run()

    def lead() -> None:
        run.is_standby = False

    run.state.steps = (run.takes(SLICE_S), lead, run.takes(SLICE_S), run.takes(SLICE_S))
    await run.validator.validate(lambda: run.is_standby)
    assert sum(run.validator.result_counts().values()) == 0
    assert run.time.slept == [PAUSE_S] * 2
