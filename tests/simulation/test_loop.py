"""The virtual loop ends what would never end, and says what it was."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from stowage.operator.loop import SchedulingLoop
from tests.simulation.loop import STEPS_PER_INSTANT, ClockStandsStill, VirtualLoop
from tests.simulation.run import simulate


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    loop.close()


def test_a_task_that_yields_without_end_is_found_and_named(loop: VirtualLoop) -> None:
    task = loop.start_process("restless", _yield_without_end)
    with pytest.raises(ClockStandsStill, match=r"at 0\.000 s.*_yield_without_end.* of restless"):
        loop.run_until_complete(asyncio.sleep(1))
    _cancel(loop, task)


def test_a_callback_that_watches_the_clock_without_end_is_found_and_named(
    loop: VirtualLoop,
) -> None:
    """Its error may not reach anybody in its process: the loop itself ends."""

    async def wait_for_the_clock() -> None:
        await asyncio.sleep(0.5)
        while loop.time() < 1:
            pass

    task = loop.start_process("patient", wait_for_the_clock)
    with pytest.raises(ClockStandsStill, match=r"at 0\.500 s.*patient runs .*wait_for_the_clock"):
        loop.run_until_complete(asyncio.sleep(1))
    assert isinstance(task.exception(), ClockStandsStill)


def test_much_work_is_no_endless_round_as_long_as_the_clock_moves(loop: VirtualLoop) -> None:
    async def work() -> None:
        for _ in range(4):
            for _ in range(STEPS_PER_INSTANT // 3):
                await asyncio.sleep(0)
            await asyncio.sleep(1)

    loop.run_until_complete(work())
    assert loop.time() == 4.0


def test_after_an_endless_round_the_loop_runs_on(loop: VirtualLoop) -> None:
    """So that a life that found one can end its processes."""
    task = loop.start_process("restless", _yield_without_end)
    with pytest.raises(ClockStandsStill):
        loop.run_until_complete(asyncio.sleep(1))
    _cancel(loop, task)
    loop.run_until_complete(asyncio.sleep(1))
    assert loop.time() == 1.0


def test_a_life_with_an_endless_round_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(SchedulingLoop, "turn", lambda _self: True)
    outcome = simulate(1, files=tmp_path)
    assert "SchedulingLoop.run()" in outcome.violations[-1]


async def _yield_without_end() -> None:
    while True:  # noqa: ASYNC110 - the round that is to be found
        await asyncio.sleep(0)


def _cancel(loop: VirtualLoop, task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
