"""PreBind plugins are awaited, limited in time, and cancelled when their pod is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from structlog.testing import capture_logs

from stowage.api.events import PreBindFinished
from stowage.api.instructions import PodReference, RunPreBind
from stowage.api.status import SUCCESS, Code, Status, unschedulable
from stowage.operator.writers.pre_binder import PreBinder

POD = PodReference("default", "p", "uid-p")
WAIT_TIMEOUT_S = 60.0

Work = Callable[[], Awaitable[Status]]


def _instruction(*plugins: str) -> RunPreBind:
    return RunPreBind(POD, "n", "default-scheduler", plugins, number=7)


def _binder(limit_s: float = WAIT_TIMEOUT_S, **work: Work) -> PreBinder:
    def start(uid: str, plugin: str) -> Coroutine[Any, Any, Status] | None:
        assert uid == POD.uid
        return _awaited(work[plugin]) if plugin in work else None

    return PreBinder(start, limit_s)


async def _awaited(work: Work) -> Status:
    return await work()


async def _succeed() -> Status:
    return SUCCESS


async def _reject() -> Status:
    return unschedulable("no volume", plugin="B")


class Blocking:
    """Waits until it is cancelled, and records that."""

    def __init__(self, answer: Status | None = None) -> None:
        self.began = asyncio.Event()
        self.was_cancelled = False
        self.answer = answer

    async def __call__(self) -> Status:
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            if self.answer is None:
                raise
        return self.answer or SUCCESS


async def test_all_plugins_run_and_success_is_reported() -> None:
    binder = _binder(A=_succeed, B=_succeed)
    assert await binder.run(_instruction("A", "B")) == PreBindFinished(POD.uid, 7, Code.SUCCESS)


async def test_the_first_rejection_ends_the_run() -> None:
    never = Blocking()
    outcome = await _binder(A=_succeed, B=_reject, C=never).run(_instruction("A", "B", "C"))
    assert outcome == PreBindFinished(POD.uid, 7, Code.UNSCHEDULABLE, ("no volume",), "B")
    assert not never.began.is_set()


@pytest.mark.parametrize("answer", [None, SUCCESS])
async def test_a_plugin_that_exceeds_the_timeout_is_cancelled_and_named(
    answer: Status | None,
) -> None:
    blocking = Blocking(answer)
    outcome = await _binder(0.0, A=blocking).run(_instruction("A"))
    assert blocking.was_cancelled
    if answer is None:
        text = 'running PreBind plugin "A": not done after 0 s'
        assert outcome == PreBindFinished(POD.uid, 7, Code.ERROR, (text,), "A")
    else:
        assert outcome == PreBindFinished(POD.uid, 7, Code.SUCCESS)


async def test_no_plugin_runs_for_a_pod_that_is_already_gone() -> None:
    assert await _binder().run(_instruction("A")) is None


@pytest.mark.parametrize("answer", [None, SUCCESS])
async def test_stopping_a_pod_cancels_its_plugins(answer: Status | None) -> None:
    blocking, never = Blocking(answer), Blocking()
    binder = _binder(A=blocking, B=never)
    running = asyncio.create_task(binder.run(_instruction("A", "B")))
    await blocking.began.wait()
    binder.stop(POD)
    assert await running is None
    assert blocking.was_cancelled
    assert not never.began.is_set()


async def test_the_next_attempt_of_a_stopped_pod_runs() -> None:
    blocking = Blocking()
    binder = _binder(A=blocking, B=_succeed)
    running = asyncio.create_task(binder.run(_instruction("A")))
    await blocking.began.wait()
    binder.stop(POD)
    await running
    binder.stop(POD)
    assert await binder.run(_instruction("B")) == PreBindFinished(POD.uid, 7, Code.SUCCESS)


class EndsSlowly(Blocking):
    """When it is cancelled, it ends once the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.cancelled = asyncio.Event()
        self.may_end = asyncio.Event()

    async def __call__(self) -> Status:
        try:
            return await super().__call__()
        finally:
            self.cancelled.set()
            await self.may_end.wait()


async def _stopped_and_tried_again(
    slow: EndsSlowly, next_one: Work
) -> tuple[PreBinder, list[asyncio.Task[PreBindFinished | None]]]:
    """A run that was stopped and has not ended, and the next run of the pod."""
    binder = _binder(A=slow, B=next_one)
    first = asyncio.create_task(binder.run(_instruction("A")))
    await slow.began.wait()
    binder.stop(POD)
    second = asyncio.create_task(binder.run(_instruction("B")))
    await slow.cancelled.wait()
    return binder, [first, second]


async def test_the_next_attempt_of_a_pod_begins_when_its_stopped_plugin_has_ended() -> None:
    slow, began = EndsSlowly(), asyncio.Event()

    async def begin() -> Status:
        assert slow.may_end.is_set()
        began.set()
        return SUCCESS

    _, runs = await _stopped_and_tried_again(slow, begin)
    assert not began.is_set()
    slow.may_end.set()
    assert await asyncio.gather(*runs) == [None, PreBindFinished(POD.uid, 7, Code.SUCCESS)]


@pytest.mark.parametrize("ends_first", [True, False])
async def test_the_next_attempt_can_be_stopped_before_and_after_the_first_has_ended(
    ends_first: bool,
) -> None:
    slow, next_one = EndsSlowly(), Blocking()
    binder, runs = await _stopped_and_tried_again(slow, next_one)
    if ends_first:
        slow.may_end.set()
        await next_one.began.wait()
    binder.stop(POD)
    slow.may_end.set()
    assert await asyncio.gather(*runs) == [None, None]
    assert next_one.was_cancelled == next_one.began.is_set() == ends_first


async def test_a_plugin_that_raises_cancelled_error_is_reported_as_an_error() -> None:
    async def cancel() -> Status:
        raise asyncio.CancelledError

    outcome = await _binder(A=cancel).run(_instruction("A"))
    assert outcome is not None
    assert (outcome.code, outcome.plugin) == (Code.ERROR, "A")


async def test_a_plugin_that_raises_is_reported_as_an_error_and_logged() -> None:
    fault = AttributeError("'NoneType' object has no attribute 'is_rejected'")

    async def fail() -> Status:
        raise fault

    with capture_logs() as logs:
        outcome = await _binder(A=fail).run(_instruction("A"))
    assert outcome is not None
    assert (outcome.code, outcome.plugin) == (Code.ERROR, "A")
    assert "NoneType" in outcome.reasons[0]
    line = {"plugin": "A", "pod": POD.key, "exc_info": fault, "log_level": "error"}
    assert logs == [line | {"event": "PreBind plugin failed"}]


async def test_shutting_down_cancels_running_plugins() -> None:
    blocking = Blocking()
    running = asyncio.create_task(_binder(A=blocking).run(_instruction("A")))
    await blocking.began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert blocking.was_cancelled


async def test_a_plugin_that_ignores_cancellation_is_abandoned_and_named() -> None:
    free = asyncio.Event()

    async def ignore_cancellation() -> Status:
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue
        return SUCCESS

    def start(_uid: str, _plugin: str) -> Coroutine[Any, Any, Status]:
        return ignore_cancellation()

    with capture_logs() as logs:
        outcome = await PreBinder(start, 0.0, end_within_s=0.0).run(_instruction("A"))
    free.set()
    await asyncio.sleep(0)
    line = {"plugin": "A", "pod": POD.key, "log_level": "warning"}
    assert logs == [line | {"event": "PreBind plugin does not end; left behind"}]
    text = 'running PreBind plugin "A": not done after 0 s'
    assert outcome == PreBindFinished(POD.uid, 7, Code.ERROR, (text,), "A")
