"""One attempt of a recorded case, explained by us, in the format of the record."""

from __future__ import annotations

from typing import Any

from stowage.analysis.explained_decision import Circumstances, explain_decision
from stowage.analysis.explanation import (
    NodeVerdict,
    PluginStatus,
    PreemptionAnswer,
    SchedulingExplanation,
)
from stowage.framework import Framework
from tests.conformance.decision_cases import Cluster

Answer = dict[str, Any]


def attempt(framework: Framework, cluster: Cluster, key: str) -> Answer:
    """Explain the decision about a pod in the fields of the record."""
    pod = cluster.pod(key)
    if pod.terminating and framework.run_pre_enqueue(pod).is_success:
        return {"outcome": "SkippedTerminating"}
    nominated = cluster.nominated()
    explained = explain_decision(framework, cluster.cache.snapshot(), pod, Circumstances(nominated))
    if explained.pre_enqueue is not None:
        return {"outcome": explained.outcome, "preEnqueue": status_record(explained.pre_enqueue)}
    answer: Answer = {"outcome": explained.outcome, "nodesTotal": explained.num_nodes}
    if explained.outcome == "Error":
        return answer | {"error": explained.message}
    if explained.num_nodes:
        answer |= {"preFilter": _pre_filter_record(explained), "nodes": _node_records(explained)}
    if explained.outcome == "Scheduled":
        return answer | _scheduled(explained)
    return answer | _unschedulable(explained) | _preemption(explained, cluster, key)


def status_record(status: PluginStatus) -> Answer:
    """A rejection as recorded."""
    return {"code": status.code, "plugin": status.plugin, "reasons": list(status.reasons)}


def _pre_filter_record(explained: SchedulingExplanation) -> Answer:
    rejection = explained.pre_filter
    record: Answer = {"code": "Success"} if rejection is None else status_record(rejection)
    record["skippedPlugins"] = list(explained.skipped_filters)
    if explained.node_names is not None:
        record["nodeNames"] = list(explained.node_names)
        record["nodeNamesPlugins"] = list(explained.left_out_by)
    return record


def _node_records(explained: SchedulingExplanation) -> Answer:
    return {each.node: _node_record(each) for each in explained.nodes}


def _node_record(verdict: NodeVerdict) -> Answer:
    if verdict.rejected_by is None:
        return {"filter": {"code": "Success"}}
    record: Answer = {"filter": status_record(verdict.rejected_by)}
    if verdict.also_rejected_by:
        record["alsoRejectedBy"] = {
            each.plugin: {"code": each.code, "reasons": list(each.reasons)}
            for each in verdict.also_rejected_by
        }
    return record


def _unschedulable(explained: SchedulingExplanation) -> Answer:
    answer: Answer = {"outcome": "Unschedulable", "message": explained.message}
    if not explained.num_nodes:
        return answer
    answer["unschedulablePlugins"] = list(explained.unschedulable_plugins)
    answer["filterMessage"] = explained.message
    preemption = explained.preemption
    if preemption is not None and preemption.message:
        answer["filterMessage"] = explained.message.removesuffix(f" {preemption.message}")
    if explained.pre_filter is not None:
        answer["preFilterMessage"] = ", ".join(explained.pre_filter.reasons)
    return answer


def _preemption(explained: SchedulingExplanation, cluster: Cluster, key: str) -> Answer:
    """The result of PostFilter; nothing if it had no node to try."""
    answer = explained.preemption
    if answer is None:
        return {}
    record: Answer = {"code": answer.code, "message": answer.message}
    if answer.nominated_node:
        return {"preemption": record | _nomination(answer, cluster, key)}
    record |= {"reasons": list(answer.reasons), "plugin": answer.plugin}
    if answer.clears_nomination:
        record["clearsNomination"] = True
    return {"preemption": record}


def _nomination(answer: PreemptionAnswer, cluster: Cluster, key: str) -> Answer:
    chosen = next(each for each in answer.candidates if each.node == answer.nominated_node)
    record: Answer = {
        "candidates": {
            each.node: {"victims": list(each.victims), "pdbViolations": each.pdb_violations}
            for each in answer.candidates
        },
        "tied": list(answer.tied),
        "nominatedNode": answer.nominated_node,
        "victims": sorted(chosen.victims),
        "pdbViolations": chosen.pdb_violations,
    }
    priority = cluster.pending[key].priority
    cleared = [
        other
        for other, node in cluster.nominations.items()
        if node == answer.nominated_node and cluster.pending[other].priority < priority
    ]
    if cleared:
        record["clearedNominations"] = sorted(cleared)
    return record


def _scheduled(explained: SchedulingExplanation) -> Answer:
    feasible = explained.ranked
    answer: Answer = {
        "feasible": sorted(each.node for each in feasible),
        "skippedScorePlugins": list(explained.skipped_scores),
        "scores": {each.node: _score_records(each) for each in feasible},
        "total": {each.node: each.total for each in feasible},
        "best": sorted(explained.best),
        "chosen": explained.chosen,
    }
    if len(feasible) == 1:
        answer["singleFeasible"] = True
    if explained.via_nomination:
        answer["viaNominatedNode"] = True
    return answer


def _score_records(verdict: NodeVerdict) -> Answer:
    return {
        each.plugin: {"raw": each.raw, "normalized": each.normalized, "weighted": each.weighted}
        for each in verdict.scores
    }
