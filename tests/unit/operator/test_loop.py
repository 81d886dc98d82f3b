"""The loop alternates between events, scheduling and I/O."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from stowage.api.events import AssignedPodSeen, Event, NodeSeen, PendingPodGone, PendingPodSeen
from stowage.api.instructions import Instruction, PodReference
from stowage.operator import loop
from stowage.operator.inbox import Inbox
from stowage.operator.loop import LoopOptions, SchedulingLoop
from tests.support.builders import make_node, make_pod
from tests.support.dispatchers import make_dispatcher
from tests.support.fake_api import FakeApiClient, FakeTime
from tests.support.round_robin_engine import RoundRobinEngine
from tests.unit.operator.tasks import let_tasks_run


class _SlowEngine(RoundRobinEngine):
    """Takes 1 ms per pod that it places, and `event_s` per event."""

    def __init__(self, time: FakeTime, event_s: float) -> None:
        super().__init__()
        self._time = time
        self._event_s = event_s

    def _handle(self, event: Event, instructions: list[Instruction]) -> None:
        self._time.now += self._event_s
        super()._handle(event, instructions)

    def _place(self, pod: PodReference) -> list[Instruction]:
        self._time.now += 0.001
        return super()._place(pod)


class _Shell:
    """The loop with a slow engine; the API server accepts every request."""

    def __init__(self, *, event_s: float = 0.0, **options: int | float) -> None:
        self.time = FakeTime()
        self.inbox = Inbox()
        self.engine = _SlowEngine(self.time, event_s)
        self.client = FakeApiClient()
        self.may_schedule = True
        self.loop = SchedulingLoop(
            self.engine,
            self.inbox,
            make_dispatcher(self.engine, self.inbox, self.client, self.time),
            lambda: self.may_schedule,
            lambda: self.time.now,
            LoopOptions(**options),  # type: ignore[arg-type]
        )

    def pods(self, number: int) -> None:
        self.inbox.put(NodeSeen(make_node("n")))
        self.inbox.put_all(PendingPodSeen(make_pod(f"p{index}")) for index in range(number))


async def test_no_pod_is_scheduled_before_scheduling_is_allowed() -> None:
    shell = _Shell()
    shell.pods(3)
    shell.may_schedule = False
    assert not shell.loop.turn()
    assert len(shell.engine.ready) == 3
    shell.may_schedule = True
    shell.loop.turn()
    assert len(shell.engine.ready) == 0


async def test_a_turn_ends_when_its_time_slice_is_over() -> None:
    shell = _Shell(slice_s=0.004, pods_per_call=1)
    shell.pods(100)
    assert shell.loop.turn()
    assert 90 <= len(shell.engine.ready) <= 98


async def test_events_that_take_long_are_handled_in_several_turns() -> None:
    shell = _Shell(event_s=0.002, events_slice_s=0.01)
    shell.pods(20)
    assert shell.loop.turn()
    assert 5 <= len(shell.engine.seen) <= 6


async def test_after_events_that_took_long_io_comes_before_scheduling() -> None:
    shell = _Shell(event_s=0.002, events_slice_s=0.1, slice_s=0.004)
    shell.pods(20)
    assert shell.loop.turn()
    assert (len(shell.engine.seen), len(shell.engine.ready)) == (21, 20)
    shell.inbox.put(PendingPodGone("default", "p0", "p0"))
    assert shell.loop.turn()
    assert len(shell.engine.seen) == 21
    assert len(shell.engine.ready) < 20


async def test_one_call_of_the_engine_attempts_no_pod_after_the_time_slice() -> None:
    shell = _Shell(slice_s=0.004, pods_per_call=1_000)
    shell.pods(100)
    assert shell.loop.turn()
    assert 95 <= len(shell.engine.ready) <= 96


async def test_scheduling_pauses_at_the_maximum_of_unfinished_bindings() -> None:
    shell = _Shell(max_unfinished_bindings=4, pods_per_call=2)
    shell.pods(10)
    assert not shell.loop.turn()
    assert len(shell.engine.being_bound) == 4


async def test_a_deadline_of_the_engine_is_handled_without_an_event() -> None:
    shell = _Shell()
    shell.engine.deadline = shell.time.now
    shell.loop.turn()
    assert shell.engine.deadline is None


async def test_the_loop_binds_all_pods_and_ends_when_stopped() -> None:
    shell = _Shell(pods_per_call=2)
    shell.pods(20)
    running = asyncio.create_task(shell.loop.run())
    await shell.client.has_sent(40)
    shell.loop.stop()
    await running
    bindings = [request for request in shell.client.requests if request.path.endswith("/binding")]
    assert len(bindings) == 20
    assert shell.engine.being_bound == {}


async def test_a_standby_with_ready_pods_turns_once_per_wake_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "GATHER_S", 0.0)
    shell = _Shell()
    shell.pods(1)
    asked = []

    def may_schedule() -> bool:
        asked.append(shell.engine.has_ready_pods())
        return False

    monkeypatch.setattr(shell.loop, "_may_schedule", may_schedule)
    running = asyncio.create_task(shell.loop.run())
    await let_tasks_run()
    asked.clear()
    for _ in range(2):
        shell.inbox.wake()
        await let_tasks_run()
    assert asked == [True, True]
    shell.loop.stop()
    await running


async def test_all_events_that_are_here_are_handled_before_the_loop_ends() -> None:
    shell = _Shell()
    shell.loop.stop()
    shell.pods(20)
    await shell.loop.run()
    assert len(shell.engine.seen) == 21
    assert shell.client.requests == []


CONFIRMATION = PendingPodGone("default", "a", "a")


async def test_a_confirmation_waits_for_the_next_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "CONFIRMATION_S", 3600.0)
    monkeypatch.setattr(loop, "GATHER_S", 0.0)
    shell = _Shell()
    running = asyncio.create_task(shell.loop.run())
    await let_tasks_run()
    shell.inbox.put(CONFIRMATION)
    await let_tasks_run()
    assert shell.engine.seen == []
    added = NodeSeen(make_node("n"))
    shell.inbox.put(added)
    await let_tasks_run()
    assert shell.engine.seen == [CONFIRMATION, added]
    shell.loop.stop()
    await running


async def test_a_confirmation_without_another_event_is_handled_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "CONFIRMATION_S", 0.0)
    monkeypatch.setattr(loop, "GATHER_S", 0.0)
    shell = _Shell()
    running = asyncio.create_task(shell.loop.run())
    await let_tasks_run()
    shell.inbox.put(CONFIRMATION)
    await let_tasks_run()
    assert shell.engine.seen == [CONFIRMATION]
    shell.loop.stop()
    await running


async def test_a_confirmation_that_waits_is_handled_before_the_loop_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "CONFIRMATION_S", 3600.0)
    shell = _Shell()
    running = asyncio.create_task(shell.loop.run())
    await let_tasks_run()
    shell.inbox.put(AssignedPodSeen(make_pod("p", node="n")))
    await let_tasks_run()
    shell.loop.stop()
    await running
    assert len(shell.engine.seen) == 1


async def test_confirmations_wake_the_loop_while_pods_are_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Scheduling pauses at a number of unfinished bindings, and each answer lets it go on."""
    monkeypatch.setattr(loop, "CONFIRMATION_S", 3600.0)
    monkeypatch.setattr(loop, "GATHER_S", 0.0)
    shell = _Shell(max_unfinished_bindings=2, pods_per_call=1)
    shell.pods(6)
    running = asyncio.create_task(shell.loop.run())
    for _ in range(10):
        await let_tasks_run()
    assert len([each for each in shell.client.requests if each.path.endswith("/binding")]) == 6
    shell.loop.stop()
    await running


async def test_the_engine_schedules_at_the_present_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shell, times = _Shell(event_s=0.001), list[float]()

    def schedule(now: float, _budget: int, _is_over: Callable[[], bool]) -> list[Instruction]:
        times.append(now)
        shell.engine.ready.clear()
        return []

    monkeypatch.setattr(shell.engine, "schedule", schedule)
    shell.pods(1)
    before = shell.time.now
    shell.loop.turn()
    (now,) = times
    assert before < now <= shell.time.now
