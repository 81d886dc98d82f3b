"""The extenders' say between Filter and Score.

The cycle never waits. If nothing is known yet of the extenders' opinion it says which nodes they
have to be asked about and ends; it is run again once they have answered, by which time other pods
may have taken nodes and new ones may have come.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from stowage.api.config.extenders import EXTENDER_PLUGIN
from stowage.api.status import Code, Status
from stowage.engine.scheduling.consulted import ConsultationNeeded, Consulted
from stowage.engine.scheduling.feasibility import FeasibleNodes
from stowage.framework import PreFilterOutcome
from stowage.framework.diagnosis import absent_nodes_reason
from stowage.state.snapshot import Snapshot


def pass_extenders(
    found: FeasibleNodes, consulted: Consulted, outcome: PreFilterOutcome, snapshot: Snapshot
) -> FeasibleNodes | ConsultationNeeded:
    """Keep the nodes that no extender rejected; ``findNodesThatPassExtenders`` of v1.36.

    A node that became feasible after the extenders were asked has to wait for the next pod, unless
    nothing else is left: then they are asked again, about all that is feasible now. The same
    happens when they reject a nominated node, which they are asked about alone.

    Args:
        found: At least one node.
        consulted: What the extenders said so far.
        outcome: Of PreFilter, for the reason of nodes rejected without one.
        snapshot: The cluster.

    Returns:
        The nodes that are left, possibly none, the others with their status; or the question.
    """
    if len(found.rows) == 1 and not consulted.any_filters:
        # A single node is not scored, so there is nothing to ask.
        return found
    names = [snapshot.node_names[row] for row in found.rows.tolist()]
    passed = np.array([name in consulted.passed for name in names], dtype=np.bool_)
    if not passed.any() and not consulted.asked.issuperset(names):
        return ConsultationNeeded(tuple(names), found.num_evaluated)
    reason = absent_nodes_reason(outcome)
    unexplained = Status(
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,) if reason else (), EXTENDER_PLUGIN
    )
    rejected = {
        row: consulted.rejected.get(name, unexplained)
        for row, name in zip(found.rows.tolist(), names, strict=True)
        if consulted.has_rejected(name)
    }
    scores = [consulted.scores.get(name, 0) for name in names if name in consulted.passed]
    return replace(
        found,
        rows=found.rows[passed],
        filtered=found.filtered.with_overruled(rejected),
        extender_scores=np.array(scores, dtype=np.int64),
    )
