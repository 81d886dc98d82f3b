"""Score: the best of the feasible nodes."""

from __future__ import annotations

from stowage.engine.scheduling.feasible_nodes import FeasibleNodes
from stowage.engine.scheduling.request import SchedulingRequest
from stowage.engine.scheduling.tie_breaker import TieBreaker
from stowage.framework import PluginFailed, ScoreResult


def prioritize_nodes(request: SchedulingRequest, found: FeasibleNodes) -> ScoreResult:
    """Run PreScore and Score, and add the extenders' scores; ``prioritizeNodes`` of v1.36.

    Raises:
        PluginFailed: A PreScore or Score plugin failed.
    """
    framework, state, pod = request.framework, request.cycle_state, request.pod
    status = framework.run_pre_score(state, pod, request.snapshot.ascending_view(found.rows))
    if not status.is_success:
        raise PluginFailed(status)
    scores = framework.run_score(state, pod, request.snapshot, found.rows)
    if found.extender_scores is not None:
        scores = scores.with_extender_scores(found.extender_scores)
    return scores


def select_host(scores: ScoreResult, ties: TieBreaker) -> int:
    """The row of a node with the highest total; ``selectHost`` of v1.36.

    Args:
        scores: Of at least one node.
        ties: Picks one of several nodes with the same total.
    """
    total = scores.total
    tied = (total == total[total.argmax()]).nonzero()[0]
    return int(scores.rows[tied[ties(len(tied)) if len(tied) > 1 else 0]])
