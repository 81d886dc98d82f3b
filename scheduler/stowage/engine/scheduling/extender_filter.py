"""Extenders between Filter and Score.

A decision never waits. Without answers from the extenders it ends with the nodes to ask them
about. The engine repeats the decision when they have answered; other pods may have taken nodes
and new nodes may have arrived in between.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from stowage.api.config.extenders import EXTENDER_PLUGIN
from stowage.api.status import Code, Status
from stowage.engine.scheduling.extender_answers import ExtenderAnswers
from stowage.engine.scheduling.feasible_nodes import FeasibleNodes
from stowage.engine.scheduling.outcome import ExtendersNeeded
from stowage.framework import PreFilterOutcome
from stowage.framework.diagnosis import absent_nodes_reason
from stowage.state.snapshot import Snapshot


def find_nodes_that_pass_extenders(
    found: FeasibleNodes,
    answers: ExtenderAnswers,
    pre_filtered: PreFilterOutcome,
    snapshot: Snapshot,
) -> FeasibleNodes | ExtendersNeeded:
    """Keep the nodes that no extender rejected; ``findNodesThatPassExtenders`` of v1.36.

    Extenders are not asked again about a node that became feasible after they answered, unless no
    other node is left; then they are asked about all feasible nodes. The same happens when they
    reject the pod's nominated node, about which they are asked alone.

    Args:
        found: At least one node.
        answers: What the extenders have answered so far.
        pre_filtered: Gives the reason of nodes that were rejected without one.
        snapshot: The cluster.

    Returns:
        The remaining nodes, possibly none, and the status of the others; or the question.
    """
    if len(found.rows) == 1 and not answers.any_filters:
        # A single node is not scored, so extenders that only prioritize are not asked.
        return found
    names = [snapshot.node_names[row] for row in found.rows.tolist()]
    passed = np.array([name in answers.passed for name in names])
    if not passed.any() and not answers.asked.issuperset(names):
        return ExtendersNeeded(tuple(names))
    reason = absent_nodes_reason(pre_filtered)
    unexplained = Status(
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,) if reason else (), EXTENDER_PLUGIN
    )
    rejected = {
        row: answers.rejected.get(name, unexplained)
        for row, name in zip(found.rows.tolist(), names, strict=True)
        if answers.has_rejected(name)
    }
    scores = [answers.scores.get(name, 0) for name in names if name in answers.passed]
    return replace(
        found,
        rows=found.rows[passed],
        filtered=found.filtered.with_overruled(rejected),
        extender_scores=np.array(scores, dtype=np.int64),
    )
