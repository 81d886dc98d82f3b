"""Makes the record of a decision from the result of an attempt."""

from __future__ import annotations

from stowage.api.decisions import Decision
from stowage.api.instructions import AttemptResult


def decision_of(attempt: AttemptResult, decision_id: str, time: str) -> Decision:
    """The record of an attempt, as users read it.

    Args:
        attempt: The engine's result.
        decision_id: The id of the record.
        time: When the attempt ended, RFC 3339 in UTC.
    """
    return Decision(
        id=decision_id,
        time=time,
        pod=attempt.pod.key,
        uid=attempt.pod.uid,
        scheduler_name=attempt.scheduler_name,
        attempt=attempt.attempts,
        result=attempt.result,
        node=attempt.node_name,
        nominated_node=attempt.nominated_node_name,
        message=attempt.message,
        reason_counts=attempt.reason_counts,
        unschedulable_plugins=attempt.unschedulable_plugins,
        evaluated_nodes=attempt.evaluated_nodes,
        feasible_nodes=attempt.feasible_nodes,
        nodes=() if attempt.best is None else attempt.best.scored_nodes(),
        duration_s=attempt.duration_s,
        configuration=attempt.configuration,
        first_fit=attempt.first_fit,
    )
