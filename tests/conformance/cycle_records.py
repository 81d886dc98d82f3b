"""Results of our scheduling cycle in the format of the record."""

from __future__ import annotations

from typing import Any

from stowage.api.status import Status
from stowage.engine.scheduling import Scheduled, Unschedulable
from stowage.framework import CycleState, Framework, PreFilterOutcome, ScoreResult
from stowage.state import PodInfo, Snapshot

Answer = dict[str, Any]


def status_record(status: Status) -> Answer:
    """A status as recorded: the reasons of a rejection sorted."""
    if status.is_success:
        return {"code": status.code.title}
    return {
        "code": status.code.title,
        "plugin": status.plugin,
        "reasons": sorted(status.reasons),
    }


def pre_filter_record(outcome: PreFilterOutcome, state: CycleState) -> Answer:
    """PreFilter: the status, who skipped, and the nodes that are left."""
    record = status_record(outcome.status)
    record["skippedPlugins"] = sorted(state.skip_filter)
    if outcome.node_names is not None:
        record["nodeNames"] = sorted(outcome.node_names)
        record["nodeNamesPlugins"] = sorted(outcome.plugins)
    return record


def unschedulable_record(result: Unschedulable) -> Answer:
    """A pod that fits nowhere: messages and plugins."""
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


def scheduled_record(
    framework: Framework, snapshot: Snapshot, pod: PodInfo, state: CycleState, result: Scheduled
) -> Answer:
    """A pod that has a node: feasible nodes, scores and the choice."""
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
