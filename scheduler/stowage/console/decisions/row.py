"""A decision as a row of the feed."""

from __future__ import annotations

from stowage.api.decisions import Decision
from stowage.console.answers.answer import Answer


class DecisionRow(Answer, frozen=True):
    """A decision.

    Attributes:
        total: The score of the chosen node; 0 if it is not known.
        runner_up: The next best node, if it is known.
        behind: By how many points the runner-up is behind.
        latency_s: The duration of the algorithm; for a decision that was seen from outside, the
            time from the creation of the pod to its binding. None if it is not known.
        exact: Whether it comes from the record of a scheduler, which holds the scores.
    """

    id: str
    time: str
    pod: str
    uid: str
    scheduler_name: str
    attempt: int
    result: str
    node: str = ""
    nominated_node: str = ""
    message: str = ""
    evaluated_nodes: int = 0
    feasible_nodes: int = 0
    duration_s: float = 0.0
    latency_s: float | None = None
    total: int = 0
    runner_up: str = ""
    behind: int = 0
    exact: bool = False


def row_of(decision: Decision) -> DecisionRow:
    """The row of a recorded decision."""
    best = decision.nodes[0] if decision.nodes else None
    second = decision.nodes[1] if len(decision.nodes) > 1 else None
    total = 0 if best is None else best.total
    return DecisionRow(
        decision.id,
        decision.time,
        decision.pod,
        decision.uid,
        decision.scheduler_name,
        decision.attempt,
        decision.result,
        decision.node,
        decision.nominated_node,
        decision.message,
        decision.evaluated_nodes,
        decision.feasible_nodes,
        decision.duration_s,
        decision.duration_s,
        total,
        "" if second is None else second.node,
        0 if second is None else total - second.total,
        exact=True,
    )
