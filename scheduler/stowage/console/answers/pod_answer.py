"""Why a pod is where it is, or why it is pending: for all nodes, plugin by plugin."""

from __future__ import annotations

from collections import Counter

import msgspec

from stowage.analysis.devices.shortage import DeviceShortage
from stowage.analysis.explain_pod import NotInCluster, explain_pod
from stowage.analysis.explanation import (
    LostPoints,
    NodeVerdict,
    PluginStatus,
    PodExplanation,
    PodGroupSummary,
    PreemptionAnswer,
    PreemptionCandidate,
    SchedulingExplanation,
    Wakeup,
)
from stowage.analysis.recorded_decision import explain_recorded
from stowage.api.decisions import Decision
from stowage.api.objects.pod import Pod
from stowage.console.answers.answer import Answer
from stowage.console.answers.cluster_map import rows_by_name
from stowage.console.answers.verdict_columns import Rejections, VerdictTable, verdict_table
from stowage.console.clusters.moment import Moment
from stowage.console.decisions.row import DecisionRow
from stowage.state.pods.pod_info import PodInfo

MAX_NODES = 20
"""Nodes that a near miss names."""
MAX_CANDIDATES = 50


class NearMissRow(Answer, frozen=True):
    """A change that would let the pod fit; at most `MAX_NODES` of its nodes."""

    change: str
    text: str
    plugin: str
    nodes: tuple[str, ...]
    num_nodes: int
    distance: float


class PreemptionRows(Answer, frozen=True):
    """The answer of PostFilter; at most `MAX_CANDIDATES` candidates, the chosen one first."""

    code: str
    plugin: str
    message: str
    nominated_node: str
    candidates: tuple[PreemptionCandidate, ...]
    num_candidates: int


class TieText(Answer, frozen=True):
    """How one of several nodes with the highest total is chosen."""

    nodes: int
    text: str


class DecisionAnswer(Answer, frozen=True):
    """A decision without its table; the fields are those of `SchedulingExplanation`."""

    outcome: str
    message: str
    num_nodes: int
    pre_enqueue: PluginStatus | None
    pre_filter: PluginStatus | None
    skipped_filters: tuple[str, ...]
    skipped_scores: tuple[str, ...]
    unschedulable_plugins: tuple[str, ...]
    reason_counts: dict[str, int]
    near_misses: list[NearMissRow]
    device_shortages: tuple[DeviceShortage, ...]
    preemption: PreemptionRows | None
    waits_for: tuple[Wakeup, ...]
    chosen: str
    best: tuple[str, ...]
    tie: TieText | None
    via_nomination: bool
    scored: bool


class PodAnswer(Answer, frozen=True):
    """A pod and the decision about it; the fields are those of `PodExplanation`."""

    version: int
    pod: str
    uid: str
    scheduler_name: str
    profile: str
    node: str
    condition: str
    basis: str
    recorded: bool
    notes: tuple[str, ...]
    group: PodGroupSummary | None
    runner_up: LostPoints | None
    requests: dict[str, int]
    priority: int
    created: str | None
    decision: DecisionAnswer
    table: VerdictTable


class VerdictMap(Answer, frozen=True):
    """The verdict and the total score of each node, in the order of the names."""

    version: int
    pod: str
    outcome: str
    message: str
    node: str
    chosen: str
    names: list[str]
    rejections: list[PluginStatus]
    verdict: list[int]
    total: list[int | None]


class DecisionDetail(Answer, frozen=True):
    """A decision of the feed, explained: by its record, or evaluated now if there is none."""

    version: int
    decision: DecisionRow
    explanation: PodAnswer


def pod_answer(moment: Moment, key: str) -> PodAnswer:
    """Explain the pod ``namespace/name``.

    Raises:
        NotInCluster: There is no such pod, or it has finished.
    """
    explained = explain_pod(moment.loaded, key)
    snapshot = moment.snapshot
    names = [snapshot.node_names[row] for row in rows_by_name(snapshot).tolist()]
    table = verdict_table(explained.decision, names)
    return _answer(moment, explained, table)


def verdict_map(moment: Moment, key: str) -> VerdictMap:
    """The verdicts about a pod, for the map.

    Raises:
        NotInCluster: There is no such pod, or it has finished.
    """
    explained = explain_pod(moment.loaded, key)
    decision, snapshot, rejections = explained.decision, moment.snapshot, Rejections()
    names = [snapshot.node_names[row] for row in rows_by_name(snapshot).tolist()]
    verdicts = {each.node: each for each in decision.nodes}
    codes = [rejections.verdict(verdicts.get(name)) for name in names]
    totals = [None if name not in verdicts else verdicts[name].total for name in names]
    return VerdictMap(
        moment.version,
        explained.pod,
        decision.outcome,
        decision.message,
        explained.node,
        decision.chosen,
        names,
        rejections.statuses,
        codes,
        totals,
    )


def recorded_answer(moment: Moment, row: DecisionRow, record: Decision | None) -> DecisionDetail:
    """Explain a decision of the feed.

    Raises:
        NotInCluster: There is no record, and the pod is gone.
    """
    if record is None:
        return DecisionDetail(moment.version, row, pod_answer(moment, row.pod))
    explained = explain_recorded(record)
    if record.feasible_nodes == 1 and not record.nodes:
        explained = _with_rejections(moment, explained)
    answer = _answer(moment, explained, verdict_table(explained.decision))
    return DecisionDetail(moment.version, row, answer)


def _with_rejections(moment: Moment, recorded: PodExplanation) -> PodExplanation:
    """A record of the only feasible node, with what rejects the other nodes now.

    The record has no rejections. It stays as it is if the pod is gone, or was created anew. The
    recorded node counts as feasible, whatever rejects it now.
    """
    try:
        now = explain_pod(moment.loaded, recorded.pod)
    except NotInCluster:
        return recorded
    others = [each for each in now.decision.nodes if each.node != recorded.node]
    rejected = [each for each in others if each.rejected_by is not None]
    if now.uid != recorded.uid or not rejected:
        return recorded
    statuses = (each.rejected_by for each in rejected if each.rejected_by is not None)
    counts = Counter(reason for each in statuses for reason in each.reasons)
    decision = msgspec.structs.replace(
        recorded.decision,
        nodes=(NodeVerdict(recorded.node), *rejected),
        reason_counts=dict(counts.most_common()),
    )
    as_of = moment.as_of or "the cluster as it is now"
    note = f"the rejections of the other nodes are evaluated against {as_of}"
    return msgspec.structs.replace(recorded, decision=decision, notes=(*recorded.notes, note))


def _answer(moment: Moment, explained: PodExplanation, table: VerdictTable) -> PodAnswer:
    pod = moment.loaded.objects.pod(explained.pod)
    info = None if pod is None else _info(moment, pod)
    return PodAnswer(
        moment.version,
        explained.pod,
        explained.uid,
        explained.scheduler_name,
        explained.profile,
        explained.node,
        explained.condition,
        _basis(moment, explained),
        explained.recorded,
        explained.notes,
        explained.group,
        explained.runner_up,
        {} if info is None else dict(info.requests),
        0 if info is None else info.priority,
        None if pod is None else pod.metadata.creation_timestamp,
        _decision(explained.decision),
        table,
    )


def _basis(moment: Moment, explained: PodExplanation) -> str:
    if explained.recorded or not moment.as_of:
        return explained.basis
    return f"evaluated against {moment.as_of}"


def _info(moment: Moment, pod: Pod) -> PodInfo | None:
    state, uid = moment.loaded.engine.state, pod.metadata.uid
    return state.cache.get_pod(uid) or state.queue.latest(uid)


def _decision(decision: SchedulingExplanation) -> DecisionAnswer:
    misses = [
        NearMissRow(
            each.change,
            each.text,
            each.plugin,
            each.nodes[:MAX_NODES],
            len(each.nodes),
            each.distance,
        )
        for each in decision.near_misses
    ]
    preemption = None if decision.preemption is None else _preemption(decision.preemption)
    return DecisionAnswer(
        decision.outcome,
        decision.message,
        decision.num_nodes,
        decision.pre_enqueue,
        decision.pre_filter,
        decision.skipped_filters,
        decision.skipped_scores,
        decision.unschedulable_plugins,
        decision.reason_counts,
        misses,
        decision.device_shortages,
        preemption,
        decision.waits_for,
        decision.chosen,
        decision.best[:MAX_NODES],
        None if decision.tie is None else TieText(decision.tie.nodes, decision.tie.text),
        decision.via_nomination,
        decision.scored,
    )


def _preemption(answer: PreemptionAnswer) -> PreemptionRows:
    chosen = answer.nominated_node
    candidates = sorted(answer.candidates, key=lambda each: each.node != chosen)
    return PreemptionRows(
        answer.code,
        answer.plugin,
        answer.message,
        chosen,
        tuple(candidates[:MAX_CANDIDATES]),
        len(candidates),
    )
