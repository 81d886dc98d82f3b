"""The loop does other work between the steps of a pod group's attempt."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from stowage.api.events import NodeSeen, PendingPodSeen, PodGroupSeen
from stowage.operator.inbox import Inbox
from stowage.operator.loop import INSTRUCTIONS_PER_STEP, LoopOptions, SchedulingLoop
from tests.stories.gang_driver import make_group, make_member
from tests.support.builders import make_node
from tests.support.dispatchers import make_dispatcher
from tests.support.engines import default_engine
from tests.support.fake_api import FakeApiClient, FakeTime

NUM_MEMBERS = 300
STEP_S = 0.0001
STEPS_PER_TURN = 10


class _Shell:
    """The loop with a gang that fits; each reading of the clock, one a step, takes a while."""

    def __init__(self) -> None:
        self.time = FakeTime()
        self.inbox = Inbox()
        self.engine = default_engine()
        self.client = FakeApiClient()
        self.may_schedule = True
        self.dispatcher = make_dispatcher(self.engine, self.inbox, self.client, self.time)
        self.loop = SchedulingLoop(
            self.engine,
            self.inbox,
            self.dispatcher,
            lambda: self.may_schedule,
            self._monotonic,
            LoopOptions(slice_s=STEPS_PER_TURN * STEP_S, max_unfinished_bindings=1_000),
        )
        self.inbox.put(NodeSeen(make_node("a", cpu=str(NUM_MEMBERS), pods=NUM_MEMBERS)))
        self.inbox.put(PodGroupSeen(make_group(min_count=NUM_MEMBERS)))
        members = [make_member(f"p-{number}") for number in range(NUM_MEMBERS)]
        self.inbox.put_all(map(PendingPodSeen, members))

    def _monotonic(self) -> float:
        self.time.now += STEP_S
        return self.time.now

    def try_some(self) -> None:
        """Take turns until some members have been tried."""
        while not self.engine.cache_counts()["assumed_pods"]:
            assert self.loop.turn()
        assert self.engine.is_in_steps

    def try_all(self) -> None:
        """Take turns until the attempt has ended."""
        self.try_some()
        while self.engine.is_in_steps:
            assert self.loop.turn()

    async def let_all_be_bound(self) -> None:
        while self.num_bindings < NUM_MEMBERS:  # noqa: ASYNC110 - the fake API tells nobody
            await asyncio.sleep(0)

    @property
    def num_bindings(self) -> int:
        return sum(each.path.endswith("/binding") for each in self.client.requests)


async def test_no_turn_takes_longer_than_its_slice() -> None:
    shell, turns = _Shell(), list[float]()
    shell.try_some()
    while shell.engine.is_in_steps:
        began_at = shell.time.now
        shell.loop.turn()
        turns.append(shell.time.now - began_at)
    assert len(turns) > 2 * NUM_MEMBERS / STEPS_PER_TURN
    assert max(turns) < (STEPS_PER_TURN + 5) * STEP_S
    assert shell.engine.cache_counts()["assumed_pods"] == NUM_MEMBERS
    shell.engine.validate()


async def test_events_wait_for_the_end_of_the_attempt() -> None:
    shell = _Shell()
    shell.try_some()
    shell.inbox.put(NodeSeen(make_node("late")))
    shell.try_all()
    assert "late" not in shell.engine.node_names()
    while shell.loop.turn():
        pass
    assert "late" in shell.engine.node_names()


async def test_other_tasks_run_between_the_members() -> None:
    shell, num_renewals = _Shell(), 0

    async def renew() -> None:
        nonlocal num_renewals
        while True:
            num_renewals += shell.engine.is_in_steps
            await asyncio.sleep(0)

    running, renewing = asyncio.create_task(shell.loop.run()), asyncio.create_task(renew())
    await shell.let_all_be_bound()
    assert num_renewals > 2 * NUM_MEMBERS / STEPS_PER_TURN
    shell.loop.stop()
    renewing.cancel()
    await running


async def test_the_instructions_of_a_group_are_dispatched_in_several_turns() -> None:
    shell = _Shell()
    shell.try_all()
    dispatched = [shell.dispatcher.num_unfinished_bindings]
    while dispatched[-1] < NUM_MEMBERS:
        shell.loop.turn()
        dispatched.append(shell.dispatcher.num_unfinished_bindings)
    most = (STEPS_PER_TURN + 1) * INSTRUCTIONS_PER_STEP
    steps = [after - before for before, after in pairwise([0, *dispatched])]
    assert max(steps) <= most < NUM_MEMBERS


async def test_an_attempt_that_has_not_ended_is_dropped_when_the_loop_stops() -> None:
    """As when the lease is lost: no member is bound, and nothing is written."""
    shell = _Shell()
    shell.try_some()
    shell.loop.stop()
    await shell.loop.run()
    assert shell.engine.is_in_steps
    assert shell.dispatcher.num_unfinished_bindings == 0
    assert shell.client.requests == []


async def test_what_has_been_decided_is_carried_out_when_the_loop_stops() -> None:
    shell = _Shell()
    shell.try_all()
    assert shell.dispatcher.num_unfinished_bindings < NUM_MEMBERS
    shell.loop.stop()
    await shell.loop.run()
    await shell.let_all_be_bound()


async def test_an_attempt_ends_although_scheduling_is_forbidden_meanwhile() -> None:
    """Before scheduling is allowed again, the caches may have to be read again."""
    shell = _Shell()
    shell.try_some()
    shell.may_schedule = False
    shell.inbox.put(NodeSeen(make_node("late")))
    while shell.loop.turn():
        pass
    assert "late" in shell.engine.node_names()
    shell.engine.validate()
