"""The log lines of a scheduling attempt."""

from __future__ import annotations

import structlog

from stowage.api.instructions import AttemptResult
from stowage.operator.logging.verbosity import logs_scores

NUM_BEST = 3
"""Number of nodes whose scores are logged; as in kube-scheduler."""

log = structlog.get_logger("stowage.operator.attempt_log")


def log_attempt(attempt: AttemptResult, decision: str) -> None:
    """Log an attempt: a line for its result, one if it was slow, and with ``-v=10`` its scores.

    Args:
        attempt: The attempt.
        decision: The id of its decision.
    """
    _log_result(attempt, decision)
    pod = attempt.pod.key
    if attempt.steps:
        steps_ms = {step: round(duration_s * 1000, 1) for step, duration_s in attempt.steps}
        duration_ms = round(attempt.duration_s * 1000, 1)
        log.info("slow scheduling cycle", pod=pod, duration_ms=duration_ms, steps_ms=steps_ms)
    if attempt.best is not None and logs_scores():
        for node in attempt.best.scored_nodes()[:NUM_BEST]:
            scores = {each.plugin: each.weighted for each in node.scores}
            log.debug("node scored", pod=pod, node=node.node, total=node.total, scores=scores)


def _log_result(attempt: AttemptResult, decision: str) -> None:
    if attempt.result == "scheduled":
        log.info(
            "scheduled",
            pod=attempt.pod.key,
            node=attempt.node_name,
            evaluated_nodes=attempt.evaluated_nodes,
            feasible_nodes=attempt.feasible_nodes,
            attempts=attempt.attempts,
            configuration=attempt.configuration,
            decision=decision,
        )
    else:
        log.info(
            attempt.result,
            pod=attempt.pod.key,
            message=attempt.message,
            plugins=attempt.unschedulable_plugins,
            attempts=attempt.attempts,
            configuration=attempt.configuration,
            decision=decision,
        )
