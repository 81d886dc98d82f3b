"""One scheduling attempt of a pod group; ``scheduleOnePodGroup`` of v1.36.

step                                          function
1.  take the other members from the queue     pop_members
2.  drop members that need no node            keep_schedulable
3.  try all members, in each placement        try_group
3b. evict pods of lower priority              preempt_for_group
4.  carry out the result                      bind_members, or take_back and put_back
5.  write the group's condition               report_group
"""

from __future__ import annotations

from stowage.api.interruptible import Interruptible
from stowage.engine.pod_groups.commitment import bind_members, put_back
from stowage.engine.pod_groups.condition import report_group
from stowage.engine.pod_groups.group_preemption import (
    BARRED,
    preempt_for_group,
    preempts_as_group,
)
from stowage.engine.pod_groups.members import (
    is_scheduled_as_group,
    keep_schedulable,
    pop_members,
)
from stowage.engine.pod_groups.outcome import GroupResult
from stowage.engine.pod_groups.placements import try_group
from stowage.engine.pod_groups.placing import Try, free_members, take_back
from stowage.engine.state.attempt import Attempt
from stowage.engine.state.engine_state import EngineState

__all__ = ["is_scheduled_as_group", "schedule_pod_group"]


def schedule_pod_group(state: EngineState, popped: Attempt, now: float) -> Interruptible[None]:
    """Attempt the group of a popped member, one member in each step."""
    members = yield from pop_members(state, popped, now)
    attempts = yield from keep_schedulable(state, members, now)
    if not attempts:
        return
    started = state.timer()
    as_group = preempts_as_group(state)
    outcome = yield from try_group(state, attempts, Try(barred=BARRED if as_group else ""))
    algorithm_duration_s = state.timer() - started
    if outcome.result is GroupResult.SCHEDULED:
        yield from bind_members(state, outcome, now, retries_rest=as_group)
    else:
        yield from take_back(state, outcome)
        if as_group and outcome.result is GroupResult.UNSCHEDULABLE:
            yield from preempt_for_group(state, outcome, attempts, now)
        yield from put_back(state, outcome, attempts, now)
    report_group(state, outcome, attempts, algorithm_duration_s)
    yield from free_members(outcome)
