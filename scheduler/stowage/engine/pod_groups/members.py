"""Taking the members of a pod group from the queue."""

from __future__ import annotations

from collections.abc import Sequence

from stowage.api.instructions import AttemptResult
from stowage.api.interruptible import Interruptible
from stowage.engine.extenders.consulting import extender_answers
from stowage.engine.scheduling_cycle import skip_pod_schedule
from stowage.engine.scheduling_failure import Failure, handle_scheduling_failure
from stowage.engine.state.attempt import Attempt
from stowage.engine.state.engine_state import EngineState


def is_scheduled_as_group(state: EngineState, attempt: Attempt) -> bool:
    """Whether a popped member is attempted together with its group.

    Not if its group is of a kind that is not served, not if the feature gate is set to false, and
    not if extenders take part: then the members are attempted one by one and wait for each other
    at Permit.
    """
    if state.gates.set_to("GenericWorkload") is False or attempt.consultation is not None:
        return False
    if not state.cache.pod_groups.honours(attempt.info):
        return False
    spec = attempt.info.spec
    return not state.extenders or not (
        state.extenders.to_review(spec) or extender_answers(state, attempt.info, None) is not None
    )


def pop_members(state: EngineState, popped: Attempt, now: float) -> Interruptible[list[Attempt]]:
    """Take the group's other unscheduled pods from the queue, and order all of them.

    Pods that PreEnqueue holds stay in the queue. Pods of higher priority come first, then those
    that became active earlier (``podGroupInfoForPod`` of v1.36).
    """
    members = state.cache.pod_groups.members(popped.info.group_key)
    attempts = [popped]
    for uid in list(members.unscheduled):
        queued = None if uid == popped.queued.uid else state.queue.pop_companion(uid, now)
        if queued is not None:
            attempts.append(Attempt(queued, queued.info, popped.started))
        yield
    attempts.sort(key=lambda each: (-each.info.priority, each.queued.initial_attempt_at or 0.0))
    return attempts


def several_schedulers(names: Sequence[str]) -> str:
    """The error of members whose scheduler names differ; empty if all are the same."""
    other = next((name for name in names if name != names[0]), None)
    if other is None:
        return ""
    return (
        "all pods in a single pod group should have the same .spec.schedulerName set, "
        f'got: "{other}" and "{names[0]}"'
    )


def keep_schedulable(
    state: EngineState, attempts: list[Attempt], now: float
) -> Interruptible[list[Attempt]]:
    """Drop members that are being deleted or placed; fail all if they name several schedulers."""
    text = several_schedulers([each.info.scheduler_name for each in attempts])
    if not text:
        return [each for each in attempts if not skip_pod_schedule(state, each.info)]
    for each in attempts:
        state.outbox.emit(
            AttemptResult(
                each.info.reference,
                "error",
                each.info.scheduler_name,
                each.queued.attempts,
                message=text,
                configuration=state.configuration,
                decision=state.next_decision(),
            )
        )
        failure = Failure(text, is_error=True)
        handle_scheduling_failure(state, each.queued, each.info, failure, now)
        yield
    return []
