"""PreBind plugins are awaited, limited in time, and cancelled when their pod is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from stowage.api.events import PreBindFinished
from stowage.api.instructions import PodReference, RunPreBind
from stowage.api.status import SUCCESS, Code, Status, unschedulable
from stowage.operator.writers.pre_binder import PreBinder

POD = PodReference("default", "p", "uid-p")
WAIT_TIMEOUT_S = 60.0

Work = Callable[[], Awaitable[Status]]


def _instruction(*plugins: str) -> RunPreBind:
    return RunPreBind(POD, "n", "default-scheduler", plugins)


def _binder(limit_s: float = WAIT_TIMEOUT_S, **work: Work) -> PreBinder:
    def start(uid: str, plugin: str) -> Coroutine[Any, Any, Status] | None:
        assert uid == POD.uid
        return _awaited(work[plugin]) if plugin in work else None

    return PreBinder(start, limit_s)


async def _awaited(work: Work) -> Status:
    return await work()


async def _agree() -> Status:
    return SUCCESS


async def _refuse() -> Status:
    return unschedulable("no volume", plugin="B")


class Stuck:
    """Waits for ever, and remembers that it was ended."""

    def __init__(self, answer: Status | None = None) -> None:
        self.began = asyncio.Event()
        self.ended = False
        self.answer = answer

    async def __call__(self) -> Status:
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.ended = True
            if self.answer is None:
                raise
        return self.answer or SUCCESS


async def test_all_plugins_run_and_the_engine_is_told() -> None:
    binder = _binder(A=_agree, B=_agree)
    assert await binder.run(_instruction("A", "B")) == PreBindFinished(POD.uid, Code.SUCCESS)


async def test_the_first_refusal_ends_it() -> None:
    never = Stuck()
    outcome = await _binder(A=_agree, B=_refuse, C=never).run(_instruction("A", "B", "C"))
    assert outcome == PreBindFinished(POD.uid, Code.UNSCHEDULABLE, ("no volume",), "B")
    assert not never.began.is_set()


@pytest.mark.parametrize("answer", [None, SUCCESS])
async def test_a_plugin_that_takes_too_long_is_ended_and_named(answer: Status | None) -> None:
    stuck = Stuck(answer)
    outcome = await _binder(0.0, A=stuck).run(_instruction("A"))
    assert stuck.ended
    if answer is None:
        text = 'running PreBind plugin "A": not done after 0 s'
        assert outcome == PreBindFinished(POD.uid, Code.ERROR, (text,), "A")
    else:
        assert outcome == PreBindFinished(POD.uid, Code.SUCCESS)


async def test_a_pod_that_is_gone_before_its_turn_starts_nothing() -> None:
    assert await _binder().run(_instruction("A")) is None


@pytest.mark.parametrize("answer", [None, SUCCESS])
async def test_a_pod_that_is_gone_meanwhile_ends_its_plugins(answer: Status | None) -> None:
    stuck, never = Stuck(answer), Stuck()
    binder = _binder(A=stuck, B=never)
    running = asyncio.create_task(binder.run(_instruction("A", "B")))
    await stuck.began.wait()
    binder.stop(POD)
    assert await running is None
    assert stuck.ended
    assert not never.began.is_set()


async def test_the_next_attempt_of_a_stopped_pod_runs_as_usual() -> None:
    stuck = Stuck()
    binder = _binder(A=stuck, B=_agree)
    running = asyncio.create_task(binder.run(_instruction("A")))
    await stuck.began.wait()
    binder.stop(POD)
    await running
    binder.stop(POD)
    assert await binder.run(_instruction("B")) == PreBindFinished(POD.uid, Code.SUCCESS)


async def test_a_plugin_that_cancels_itself_is_an_error_and_ends_nothing_else() -> None:
    async def cancel() -> Status:
        raise asyncio.CancelledError

    outcome = await _binder(A=cancel).run(_instruction("A"))
    assert outcome is not None
    assert (outcome.code, outcome.plugin) == (Code.ERROR, "A")


async def test_whatever_is_raised_the_engine_gets_an_answer() -> None:
    async def fail() -> Status:
        raise AttributeError("'NoneType' object has no attribute 'is_rejected'")

    outcome = await _binder(A=fail).run(_instruction("A"))
    assert outcome is not None
    assert (outcome.code, outcome.plugin) == (Code.ERROR, "A")
    assert "NoneType" in outcome.reasons[0]


async def test_shutting_down_cancels_what_runs() -> None:
    stuck = Stuck()
    running = asyncio.create_task(_binder(A=stuck).run(_instruction("A")))
    await stuck.began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert stuck.ended


async def test_a_plugin_that_ignores_its_end_is_left_behind_and_named() -> None:
    free = asyncio.Event()

    async def deaf() -> Status:
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue
        return SUCCESS

    def start(_uid: str, _plugin: str) -> Coroutine[Any, Any, Status]:
        return deaf()

    outcome = await PreBinder(start, 0.0, end_within_s=0.0).run(_instruction("A"))
    text = 'running PreBind plugin "A": not done after 0 s'
    assert outcome == PreBindFinished(POD.uid, Code.ERROR, (text,), "A")
    free.set()
    await asyncio.sleep(0)
