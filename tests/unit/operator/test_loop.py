"""The loop alternates between events, scheduling and I/O."""

from __future__ import annotations

import asyncio

from stowage.api.events import NodeSeen, PendingPodSeen
from stowage.operator.inbox import Inbox
from stowage.operator.loop import LoopOptions, SchedulingLoop
from tests.support.builders import make_node, make_pod
from tests.support.dispatchers import make_dispatcher
from tests.support.fake_api import FakeApiClient, FakeTime
from tests.support.round_robin_engine import RoundRobinEngine


class _Shell:
    """The loop with an engine that takes 1 ms per call; the API server accepts every request."""

    def __init__(self, **options: int | float) -> None:
        self.time = FakeTime()
        self.inbox = Inbox()
        self.engine = RoundRobinEngine()
        self.client = FakeApiClient()
        self.may_schedule = True
        self.loop = SchedulingLoop(
            self.engine,
            self.inbox,
            make_dispatcher(self.engine, self.inbox, self.client, self.time),
            lambda: self.may_schedule,
            self._tick,
            LoopOptions(**options),  # type: ignore[arg-type]
        )

    def _tick(self) -> float:
        self.time.now += 0.001
        return self.time.now

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


async def test_scheduling_pauses_at_the_maximum_of_unfinished_bindings() -> None:
    shell = _Shell(max_unfinished_bindings=4, pods_per_call=2)
    shell.pods(10)
    assert not shell.loop.turn()
    assert len(shell.engine.being_bound) == 4


async def test_a_deadline_of_the_engine_is_handled_without_an_event() -> None:
    shell = _Shell()
    shell.engine.deadline = shell.time.now + 0.0005
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
