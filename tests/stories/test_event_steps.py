"""An event that moves many waiting pods is handled in steps; no other call comes in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from stowage.api.events import Event, NodeSeen, PendingPodSeen, PodGroupSeen
from stowage.api.instructions import Instruction
from stowage.api.interruptible import Interruptible, finish
from stowage.api.objects.pod import Pod, TopologySpreadConstraint
from stowage.engine import Engine
from stowage.queue.sub_queues import PODS_PER_STEP
from tests.stories.gang_driver import make_group, make_member
from tests.support.builders import label_selector, make_node, make_pod
from tests.support.engines import (
    DEFAULT_PROFILE,
    change_to,
    configurable_engine,
    default_engine,
)

NUM_STEPS = 3
NUM_PODS = NUM_STEPS * PODS_PER_STEP
LARGER_NODE = NodeSeen(make_node("a", cpu="8"))


def _waiting(num_classes: int) -> Engine:
    """Pods of several classes that are too large for the only node."""
    engine = default_engine()
    engine.handle([NodeSeen(make_node("a", cpu="1"))], 0.0)
    engine.handle(map(PendingPodSeen, _pods(num_classes)), 0.0)
    engine.schedule(0.0, NUM_PODS)
    assert engine.pending_counts()["unschedulable"] == NUM_PODS
    return engine


def _pods(num_classes: int) -> Iterator[Pod]:
    for index in range(NUM_PODS):
        yield make_pod(f"p-{index}", cpu="4", labels={"class": str(index % num_classes)})


def _backing_off() -> Engine:
    engine = _waiting(1)
    engine.handle([LARGER_NODE], 0.5)
    assert engine.pending_counts()["backoff"] == NUM_PODS
    return engine


def _taken(steps: Interruptible[list[Instruction]]) -> int:
    """The number of steps before the last one."""
    return sum(1 for _ in steps)


@pytest.mark.parametrize(
    ("make", "events", "now", "queue"),
    [
        (lambda: _waiting(1), [LARGER_NODE], 0.5, "backoff"),
        (lambda: _waiting(1), [LARGER_NODE], 60.0, "active"),
        (lambda: _waiting(NUM_PODS), [LARGER_NODE], 60.0, "active"),
        (_backing_off, [], 60.0, "active"),
        (lambda: _waiting(1), [], 400.0, "active"),
    ],
    ids=["to backoff", "to active", "all of other classes", "end of backoff", "long wait"],
)
def test_pods_move_in_steps_as_in_one_call(
    make: Callable[[], Engine], events: list[Event], now: float, queue: str
) -> None:
    at_once, in_steps = make(), make()
    answer = at_once.handle(events, now)
    steps = in_steps.handling_steps(events, now)
    assert _taken(steps) >= NUM_STEPS - 1
    assert answer == []
    assert in_steps.pending_counts()[queue] == NUM_PODS
    assert in_steps.dump() == at_once.dump()
    in_steps.validate()


def test_the_last_member_of_a_gang_releases_the_others_in_steps() -> None:
    engine = default_engine()
    engine.handle([PodGroupSeen(make_group(min_count=NUM_PODS))], 0.0)
    *others, last = [make_member(f"p-{number}") for number in range(NUM_PODS)]
    engine.handle(map(PendingPodSeen, others), 0.0)
    assert engine.pending_counts()["gated"] == NUM_PODS - 1
    assert _taken(engine.handling_steps([PendingPodSeen(last)], 0.0)) >= NUM_STEPS - 1
    assert engine.pending_counts()["active"] == NUM_PODS
    engine.validate()


def test_waiting_pods_take_a_new_configuration_in_steps() -> None:
    engine = configurable_engine(DEFAULT_PROFILE)
    engine.handle(map(PendingPodSeen, _pods(1)), 0.0)
    change = change_to(DEFAULT_PROFILE, podMaxBackoffSeconds=20)
    assert _taken(engine.handling_steps([change], 0.0)) >= NUM_STEPS - 1
    assert engine.pending_counts()["active"] == NUM_PODS
    assert engine.state.configuration == change.hash
    engine.validate()


def test_the_label_columns_of_a_pod_are_built_in_steps() -> None:
    keys = ["rack", "row", "room"]
    engine = default_engine()
    engine.handle([NodeSeen(make_node("a", labels=dict.fromkeys(keys, "x")))], 0.0)
    for name, num_steps in (("first", len(keys)), ("second", 0)):
        constraints = tuple(
            TopologySpreadConstraint(1, key, "DoNotSchedule", label_selector({"app": "a"}))
            for key in keys
        )
        pod = make_pod(name, labels={"own": name}, topology_spread_constraints=constraints)
        engine.handle([PendingPodSeen(pod)], 0.0)
        assert _taken(engine.scheduling_steps(0.0, 1)) == num_steps
    assert engine.in_flight() == 2
    engine.validate()


def test_an_event_that_moves_few_pods_is_one_step() -> None:
    engine = default_engine()
    assert _taken(engine.handling_steps([NodeSeen(make_node("a"))], 0.0)) == 0


def test_the_engine_refuses_other_calls_before_the_last_step() -> None:
    engine = _waiting(1)
    steps = engine.handling_steps([LARGER_NODE], 0.5)
    next(steps)
    assert engine.is_in_steps
    with pytest.raises(RuntimeError, match="before the last of its steps"):
        engine.handle([], 0.5)
    with pytest.raises(RuntimeError, match="before the last of its steps"):
        engine.schedule(0.5, 1)
    finish(steps)
    engine.handle([], 0.5)
