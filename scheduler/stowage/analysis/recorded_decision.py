"""Explains a pod by the recorded decision about it."""

from __future__ import annotations

from stowage.analysis.explain_pod import runner_up
from stowage.analysis.explained_decision import ERROR, SCHEDULED, UNSCHEDULABLE
from stowage.analysis.explanation import (
    NodeVerdict,
    PodExplanation,
    PreemptionAnswer,
    SchedulingExplanation,
)
from stowage.api.decisions import Decision
from stowage.api.status import Code

_OUTCOMES = {"scheduled": SCHEDULED, "unschedulable": UNSCHEDULABLE, "error": ERROR}


def explain_recorded(recorded: Decision) -> PodExplanation:
    """The explanation of a pod from the decision as it was made."""
    decision = _decision(recorded)
    configuration = f", configuration {recorded.configuration}" if recorded.configuration else ""
    return PodExplanation(
        recorded.pod,
        recorded.uid,
        recorded.scheduler_name,
        recorded.scheduler_name,
        f"the decision {recorded.id} as it was made at {recorded.time}: "
        f"attempt {recorded.attempt}{configuration}",
        decision,
        node=recorded.node,
        runner_up=runner_up(decision, recorded.node),
        notes=_notes(recorded),
        recorded=True,
    )


def _decision(recorded: Decision) -> SchedulingExplanation:
    nodes = tuple(
        NodeVerdict(each.node, scores=each.scores, total=each.total) for each in recorded.nodes
    )
    best = max((each.total for each in recorded.nodes), default=0)
    preemption = None
    if recorded.nominated_node:
        preemption = PreemptionAnswer(Code.SUCCESS.title, nominated_node=recorded.nominated_node)
    return SchedulingExplanation(
        _OUTCOMES.get(recorded.result, recorded.result),
        recorded.message,
        nodes=nodes,
        unschedulable_plugins=recorded.unschedulable_plugins,
        reason_counts=recorded.reason_counts,
        preemption=preemption,
        chosen=recorded.node,
        best=tuple(each.node for each in recorded.nodes if each.total == best),
        scored=bool(nodes),
        first_fit=recorded.first_fit,
    )


def _notes(recorded: Decision) -> tuple[str, ...]:
    """What the record leaves out."""
    if not recorded.evaluated_nodes:
        return ()
    counted = f"{recorded.evaluated_nodes} nodes were evaluated"
    if recorded.result != "scheduled":
        return (f"{counted}; the record counts their reasons and names none of them",)
    if recorded.feasible_nodes == 1 and not recorded.nodes:
        only = f"{recorded.node} was the only one that passed Filter, so none was scored"
        return (f"{counted}; {only}",)
    kept = f"; the record has the best {len(recorded.nodes)} of them" if recorded.nodes else ""
    return (f"{counted}, {recorded.feasible_nodes} were feasible{kept}",)
