"""One attempt of a recorded case in our scheduling cycle, in the format of the record."""

from __future__ import annotations

from typing import Any

from stowage.api.status import Status
from stowage.engine.scheduling import (
    Failed,
    Scheduled,
    SchedulingRequest,
    TieBreaker,
    Unschedulable,
    schedule_pod,
)
from stowage.framework import (
    CycleState,
    FilterResult,
    Framework,
    Nominations,
    PreFilterOutcome,
    ScoreResult,
)
from stowage.state import PodInfo, Snapshot
from tests.conformance.decision_cases import Cluster

Answer = dict[str, Any]


def attempt(framework: Framework, cluster: Cluster, key: str) -> Answer:
    """Schedule a pod and describe the result in the fields of the record."""
    pod = cluster.pod(key)
    gate = framework.run_pre_enqueue(pod)
    if not gate.is_success:
        return {"outcome": "Gated", "preEnqueue": status_record(gate)}
    if pod.terminating:
        return {"outcome": "SkippedTerminating"}
    snapshot = cluster.cache.snapshot()
    nominated, state = cluster.nominated(), CycleState()
    ties = TieBreaker(lambda _: 0)
    result = schedule_pod(
        SchedulingRequest(framework, snapshot, pod, state, ties, nominated=nominated)
    )
    answer: Answer = {"nodesTotal": snapshot.num_nodes}
    if isinstance(result, Failed):
        return answer | {"outcome": "Error", "error": result.status.message}
    if snapshot.num_nodes:
        answer |= _filtering(framework, snapshot, pod, nominated)
    if isinstance(result, Unschedulable):
        return answer | _unschedulable(result) | _preemption(result, pod, nominated)
    if not isinstance(result, Scheduled):
        raise TypeError(f"there are no extenders to answer {result}")
    return answer | _scheduled(framework, snapshot, pod, state, result)


def status_record(status: Status) -> Answer:
    """A status as recorded: the reasons of a rejection sorted."""
    if status.is_success:
        return {"code": status.code.title}
    return {
        "code": status.code.title,
        "plugin": status.plugin,
        "reasons": sorted(status.reasons),
    }


def _filtering(
    framework: Framework, snapshot: Snapshot, pod: PodInfo, nominated: Nominations
) -> Answer:
    """PreFilter, and each node's verdict, whether or not the pod has a nominated node."""
    state = CycleState()
    outcome = framework.run_pre_filter(state, pod, snapshot)
    answer: Answer = {"preFilter": _pre_filter_record(outcome, state), "nodes": {}}
    if not outcome.status.is_success:
        return answer
    filtered = framework.run_filter(state, pod, snapshot, outcome.node_names, nominated)
    for row in filtered.asked.rows[filtered.asked.exists].tolist():
        answer["nodes"][snapshot.node_names[row]] = _node_record(filtered, row)
    return answer


def _pre_filter_record(outcome: PreFilterOutcome, state: CycleState) -> Answer:
    record = status_record(outcome.status)
    record["skippedPlugins"] = sorted(state.skip_filter)
    if outcome.node_names is not None:
        record["nodeNames"] = sorted(outcome.node_names)
        record["nodeNamesPlugins"] = sorted(outcome.plugins)
    return record


def _node_record(filtered: FilterResult, row: int) -> Answer:
    status = filtered.status(row)
    record: Answer = {"filter": status_record(status)}
    if status.is_success:
        return record
    also = {}
    for answer in filtered.verdicts.answers:
        other = answer.status(filtered.position(row))
        if answer.plugin != status.plugin and not other.is_success:
            also[answer.plugin] = {
                "code": other.code.title,
                "reasons": sorted(other.reasons),
            }
    if also:
        record["alsoRejectedBy"] = also
    return record


def _unschedulable(result: Unschedulable) -> Answer:
    diagnosis = result.diagnosis
    if not diagnosis.num_nodes:
        return {"outcome": "Unschedulable", "message": result.message}
    answer: Answer = {
        "outcome": "Unschedulable",
        "unschedulablePlugins": sorted(diagnosis.unschedulable_plugins),
        "message": result.message,
        "filterMessage": result.message,
    }
    if diagnosis.post_filter_message:
        without = len(diagnosis.post_filter_message) + 1
        answer["filterMessage"] = result.message[:-without]
    if diagnosis.pre_filter_message:
        answer["preFilterMessage"] = diagnosis.pre_filter_message
    return answer


def _preemption(result: Unschedulable, pod: PodInfo, nominated: Nominations) -> Answer:
    """The result of PostFilter; nothing if it had no node to try."""
    diagnosis = result.diagnosis
    if not diagnosis.num_nodes:
        return {}
    status = result.post_filter_status
    record: Answer = {"code": status.code.title}
    if result.preemption is None or result.preemption.chosen is None:
        return {
            "preemption": record
            | {"message": status.message, "reasons": list(status.reasons), "plugin": status.plugin}
            | ({"clearsNomination": True} if result.nominated_node_name == "" else {})
        }
    chosen = result.preemption.chosen
    candidates = {
        name: {"victims": [pod.key for pod in each.victims], "pdbViolations": each.num_violations}
        for name, each in result.preemption.find_candidates().items()
    }
    record |= {
        "message": status.message,
        "candidates": candidates,
        "tied": list(result.preemption.tied),
        "nominatedNode": chosen.node_name,
        "victims": sorted(pod.key for pod in chosen.victims),
        "pdbViolations": chosen.num_violations,
    }
    cleared = [
        each.key
        for uid in nominated.uids()
        if nominated.node_of(uid) == chosen.node_name
        and (each := nominated.pod(uid)) is not None
        and each.priority < pod.priority
    ]
    if cleared:
        record["clearedNominations"] = sorted(cleared)
    return {"preemption": record}


def _scheduled(
    framework: Framework, snapshot: Snapshot, pod: PodInfo, state: CycleState, result: Scheduled
) -> Answer:
    rows = result.feasible.rows
    scores = result.scores
    if scores is None:
        # kube-scheduler does not score a single feasible node, but the record has its scores.
        framework.run_pre_score(state, pod, snapshot.view(rows))
        scores = framework.run_score(state, pod, snapshot, rows)
    names = [snapshot.node_names[row] for row in rows.tolist()]
    total = dict(zip(names, scores.total.tolist(), strict=True))
    answer: Answer = {
        "outcome": "Scheduled",
        "feasible": sorted(names),
        "skippedScorePlugins": sorted(state.skip_score),
        "scores": _score_records(scores, names),
        "total": total,
        "best": sorted(name for name in names if total[name] == max(total.values())),
        "chosen": result.node_name,
    }
    if len(names) == 1:
        answer["singleFeasible"] = True
    if result.feasible.via_nomination:
        answer["viaNominatedNode"] = True
    return answer


def _score_records(scores: ScoreResult, names: list[str]) -> Answer:
    records: Answer = {name: {} for name in names}
    for each in scores.per_plugin():
        columns = zip(
            names,
            each.raw.tolist(),
            each.normalized.tolist(),
            each.weighted.tolist(),
            strict=True,
        )
        for name, raw, normalized, weighted in columns:
            records[name][each.plugin] = {
                "raw": raw,
                "normalized": normalized,
                "weighted": weighted,
            }
    return records
