"""The PodGroupScheduled condition of a pod group, and the result of its attempt."""

from __future__ import annotations

from collections.abc import Sequence

from stowage.api.instructions import PodGroupAttemptResult
from stowage.engine.pod_groups.outcome import GroupOutcome, GroupResult
from stowage.engine.state.attempt import Attempt
from stowage.engine.state.engine_state import EngineState

_REASONS = {
    GroupResult.SCHEDULED: "Scheduled",
    GroupResult.UNSCHEDULABLE: "Unschedulable",
    GroupResult.WAITING_ON_PREEMPTION: "Unschedulable",
    GroupResult.ERROR: "SchedulerError",
}


def report_group(
    state: EngineState,
    outcome: GroupOutcome,
    attempts: Sequence[Attempt],
    algorithm_duration_s: float,
) -> None:
    """Write the condition, unless it is up to date, and emit the result for log and metrics."""
    info = attempts[0].info
    known = state.cache.pod_groups.group(info.group_key)
    if known is not None:
        status = "True" if outcome.result is GroupResult.SCHEDULED else "False"
        condition = (status, _REASONS[outcome.result], outcome.message)
        patch = state.group_statuses.scheduled(known, condition)
        if patch is not None:
            state.outbox.emit(patch)
    state.outbox.emit(
        PodGroupAttemptResult(
            info.namespace,
            info.group,
            outcome.result.value,
            info.scheduler_name,
            outcome.message,
            len(attempts),
            outcome.num_fitting,
            state.timer() - attempts[0].started,
            algorithm_duration_s,
        )
    )
