"""Score: the best of the feasible nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowage.api.decisions import BestNodes
from stowage.engine.scheduling.feasible_nodes import FeasibleNodes
from stowage.engine.scheduling.request import SchedulingRequest
from stowage.framework import BrokenTie, Draw, PluginFailed, ScoreResult

#: Number of nodes whose scores are recorded.
NUM_RECORDED = 10


def prioritize_nodes(request: SchedulingRequest, found: FeasibleNodes) -> ScoreResult:
    """Run PreScore and Score, and add the extenders' scores; ``prioritizeNodes`` of v1.36.

    Raises:
        PluginFailed: A PreScore or Score plugin failed.
    """
    framework, state, pod = request.framework, request.cycle_state, request.pod
    runs = found.filtered.runs if found.rows is found.filtered.rows else None
    view = request.snapshot.ascending_view(found.rows, runs)
    status = framework.run_pre_score(state, pod, view, request.before)
    if not status.is_success:
        raise PluginFailed(status)
    scores = framework.run_score(state, pod, request.snapshot, found.rows)
    if found.extender_scores is not None:
        scores = scores.with_extender_scores(found.extender_scores)
    return scores


def select_host(request: SchedulingRequest, scores: ScoreResult) -> tuple[int, BrokenTie | None]:
    """The position of a node with the highest total, and how a tie was broken.

    Args:
        request: The pod, and the policy for ties of its profile.
        scores: Of at least one node.

    Returns:
        An index in ``scores.rows``; None if no other node has the highest total.

    Raises:
        PluginFailed: A plugin that was asked about tied nodes failed.
    """
    tied = scores.tied()
    if len(tied) == 1:
        return tied.position(0), None
    if request.framework.profile.ties.is_random:
        chosen = tied.position(request.ties(len(tied)))
        return chosen, BrokenTie(len(tied), (), "Random")
    positions = tied.all()
    rows = scores.rows[positions]
    draw = Draw(request.ties, request.turn, request.start)
    row, tie = request.framework.break_tie(
        request.cycle_state, request.pod, request.snapshot, rows, draw
    )
    if tie.last_resort == "RoundRobin":
        request.ties.note(tie.num_nodes)
    return int(positions[np.searchsorted(rows, row)]), tie


def best_nodes(scores: ScoreResult, chosen: int, names: Sequence[str]) -> BestNodes:
    """The chosen node and the best others, by falling total and ascending row.

    Args:
        scores: As `select_host` got them; valid until the next cycle.
        chosen: The position of the chosen node.
        names: Row -> node name.
    """
    positions = np.array(_best_positions(scores, chosen))
    of_plugins = scores.pick(positions)
    return BestNodes(
        tuple([names[row] for row in scores.rows.take(positions).tolist()]),
        tuple(scores.total.take(positions).tolist()),
        of_plugins.weights,
        of_plugins.plain_plugins,
        of_plugins.plain.tobytes(),
        of_plugins.others,
    )


def _best_positions(scores: ScoreResult, chosen: int) -> list[int]:
    total, tied = scores.total, scores.tied()
    if len(tied) >= NUM_RECORDED:
        first = tied.first(NUM_RECORDED).tolist()
        others = [position for position in first if position != chosen]
        return [chosen, *others[: NUM_RECORDED - 1]]
    left, lowest = total.copy(), np.iinfo(total.dtype).min
    found = [chosen]
    # Nine passes over the totals cost less than one partition of them.
    for _ in range(min(NUM_RECORDED, len(total)) - 1):
        left[found[-1]] = lowest
        found.append(int(left.argmax()))
    return found
