"""The longest step of the event loop, and its longest part."""

from __future__ import annotations

from collections.abc import Callable

from stowage_benchmarks.steps.meter import Meter, Step

_MS = 1_000_000


def test_the_longest_step_counts_with_its_longest_part() -> None:
    meter = Meter(_clock(0, 1, 3, 4, 5, 10, 16))
    with meter.step("loop"):
        meter.enter("NodeSeen")
    with meter.step("loop"):
        meter.enter("NodeSeen")
        meter.enter("schedule")
    assert meter.longest == Step(cpu_ms=12.0, kind="schedule", part_ms=6.0)
    assert meter.num_steps == 2


def test_a_part_names_the_one_before_it() -> None:
    meter = Meter(_clock(0, 1, 2, 3))
    with meter.step("loop"):
        assert meter.enter("NodeSeen") == "loop"
        assert meter.enter("loop") == "NodeSeen"


def _clock(*milliseconds: int) -> Callable[[], int]:
    times = iter(milliseconds)
    return lambda: next(times) * _MS
