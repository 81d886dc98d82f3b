"""Runs the scheduling algorithm for a pod and explains its decision."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from stowage.analysis.devices.pod_shortages import PodShortages, pod_shortages, with_device_misses
from stowage.analysis.explanation import (
    NearMiss,
    NodeVerdict,
    PreemptionAnswer,
    PreemptionCandidate,
    SchedulingExplanation,
    Tie,
    TieNarrowing,
    Wakeup,
)
from stowage.analysis.near_misses import find_near_misses
from stowage.analysis.node_verdict_table import plugin_status, verdict_records
from stowage.engine.scheduling import (
    Failed,
    Scheduled,
    SchedulingRequest,
    TieBreaker,
    Unschedulable,
    schedule_pod,
)
from stowage.engine.state.engine_state import EngineState
from stowage.framework import (
    NO_NOMINATIONS,
    BrokenTie,
    Candidate,
    CycleState,
    FilterResult,
    Framework,
    Nominations,
    PluginFailed,
    PreemptionBarred,
    ScoreResult,
)
from stowage.framework.verdict import Int64Array
from stowage.plugins.gang_scheduling import GangScheduling
from stowage.queue.queue_events import UNSCHEDULED_POD_ADD, event_label, registration_labels
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

SCHEDULED = "Scheduled"
UNSCHEDULABLE = "Unschedulable"
GATED = "Gated"
ERROR = "Error"


class Circumstances(msgspec.Struct, frozen=True):
    """What a decision depends on besides the pod, its profile and the objects of the cluster.

    Attributes:
        nominated: All nominations in the cluster.
        node_names: The only nodes that exist for the pod; None for all.
        barred: Why the pod may not preempt; empty if it may.
        takes_first: As in `SchedulingRequest`.
        start: The position in the search order at which the search begins.
        wall_clock: Returns the seconds since the epoch.
    """

    nominated: Nominations = NO_NOMINATIONS
    node_names: frozenset[str] | None = None
    barred: str = ""
    takes_first: bool = False
    start: int = 0
    wall_clock: Callable[[], float] = lambda: 0.0

    @classmethod
    def of(cls, state: EngineState, framework: Framework) -> Circumstances:
        """Those of the engine's next decision about a pod of a profile."""
        return cls(
            state.queue.nominator,
            takes_first=state.takes_first(framework),
            start=state.next_start,
            wall_clock=state.wall_clock,
        )


def explain_decision(
    framework: Framework,
    snapshot: Snapshot,
    pod: PodInfo,
    circumstances: Circumstances = Circumstances(),  # noqa: B008 - it is frozen
) -> SchedulingExplanation:
    """Decide about the pod as the scheduler does, on all nodes, and explain the decision.

    Ties are broken by the profile's policy; ``Random`` and ``RoundRobin`` take the first of the
    nodes that may be chosen. Extenders are not asked, and
    ``percentageOfNodesToScore`` does not limit the search.

    Args:
        framework: The pod's profile.
        snapshot: The cluster; the pod is not on one of its nodes.
        pod: The pod, without a node.
        circumstances: The rest.
    """
    gate = framework.run_pre_enqueue(pod)
    if not gate.is_success:
        status = plugin_status(gate)
        return SchedulingExplanation(
            GATED,
            gate.message,
            snapshot.num_nodes,
            pre_enqueue=status,
            waits_for=_waits_for(framework, [gate.plugin]),
        )
    request = _request(framework, snapshot, pod, circumstances)
    result = schedule_pod(request)
    if isinstance(result, Failed):
        plugins = [result.status.plugin] if result.status.plugin else []
        return SchedulingExplanation(
            ERROR, result.status.message, snapshot.num_nodes, unschedulable_plugins=tuple(plugins)
        )
    if isinstance(result, Scheduled):
        return _scheduled(request, result)
    if not isinstance(result, Unschedulable):
        raise TypeError(f"no extender was to be asked, but the outcome is {result}")
    return _unschedulable(request, result)


def without_post_filter(message: str, explained: SchedulingExplanation) -> str:
    """A fit error without what PostFilter says: for pods that preempt none in a question."""
    post_filter = "" if explained.preemption is None else explained.preemption.message
    return message.removesuffix(f" {post_filter}") if post_filter else message


def _request(
    framework: Framework, snapshot: Snapshot, pod: PodInfo, circumstances: Circumstances
) -> SchedulingRequest:
    state = CycleState(wall_clock=circumstances.wall_clock)
    if circumstances.barred:
        state.write(PreemptionBarred(circumstances.barred))
    return SchedulingRequest(
        framework,
        snapshot,
        pod,
        state,
        TieBreaker(lambda _num_ties: 0),
        nominated=circumstances.nominated,
        start=circumstances.start,
        takes_first=circumstances.takes_first,
        node_names=circumstances.node_names,
    )


def _scheduled(request: SchedulingRequest, result: Scheduled) -> SchedulingExplanation:
    state = request.cycle_state
    scores = result.scores
    scored = scores is not None
    if scores is None:
        found = result.feasible
        rows = found.filtered.rows if found.first_fit else found.rows
        scores = _unasked_scores(request, rows)
    explanation = _with_nodes(request, SchedulingExplanation(SCHEDULED), scores)
    feasible = explanation.ranked
    best = max((each.total or 0 for each in feasible), default=0)
    return msgspec.structs.replace(
        explanation,
        skipped_scores=tuple(sorted(state.skip_score)),
        chosen=result.node_name,
        best=tuple(each.node for each in feasible if each.total == best),
        tie=None if result.tie is None else _tie(result.tie),
        via_nomination=result.feasible.via_nomination,
        scored=scored,
        first_fit=result.feasible.first_fit,
    )


def _unasked_scores(request: SchedulingRequest, rows: Int64Array) -> ScoreResult | None:
    """The scores of nodes of which one is taken unscored; None if a plugin fails."""
    framework, snapshot, state = request.framework, request.snapshot, request.cycle_state
    status = framework.run_pre_score(state, request.pod, snapshot.view(rows))
    if not status.is_success:
        return None
    try:
        return framework.run_score(state, request.pod, snapshot, rows)
    except PluginFailed:
        return None


def _tie(broken: BrokenTie) -> Tie:
    plugins = tuple(TieNarrowing(each.plugin, each.left) for each in broken.narrowings)
    return Tie(broken.num_nodes, plugins, broken.last_resort or "")


def _unschedulable(request: SchedulingRequest, result: Unschedulable) -> SchedulingExplanation:
    plugins = sorted(result.unschedulable_plugins)
    explanation = SchedulingExplanation(
        UNSCHEDULABLE,
        result.message,
        unschedulable_plugins=tuple(plugins),
        reason_counts=dict(result.diagnosis.reason_counts.most_common()),
        preemption=_preemption(result) if request.num_nodes else None,
        waits_for=_waits_for(request.framework, sorted(result.requeueing_plugins)),
    )
    return _with_nodes(request, explanation, None)


def _with_nodes(
    request: SchedulingRequest, explanation: SchedulingExplanation, scores: ScoreResult | None
) -> SchedulingExplanation:
    """The explanation with the verdicts of all nodes, also if the pod fits on its nominated one."""
    framework, snapshot, pod = request.framework, request.snapshot, request.pod
    explanation = msgspec.structs.replace(explanation, num_nodes=request.num_nodes)
    if not request.num_nodes:
        return explanation
    state = CycleState(wall_clock=request.cycle_state.wall_clock)
    outcome = framework.run_pre_filter(state, pod, snapshot)
    skipped = tuple(sorted(state.skip_filter))
    if not outcome.status.is_success:
        return msgspec.structs.replace(
            explanation, pre_filter=plugin_status(outcome.status), skipped_filters=skipped
        )
    asked = request.nodes_left_by(outcome.node_names)
    try:
        filtered = framework.run_filter(state, pod, snapshot, asked, request.nominated)
    except PluginFailed:
        return explanation  # on nodes that the decision did not need
    names = list(snapshot.node_names)
    nodes = verdict_records(filtered, scores, names)
    lacking = pod_shortages(state, pod, snapshot, nodes)
    return msgspec.structs.replace(
        explanation,
        nodes=nodes,
        node_names=None if outcome.node_names is None else tuple(sorted(outcome.node_names)),
        left_out_by=tuple(sorted(outcome.plugins)) if outcome.node_names is not None else (),
        skipped_filters=skipped,
        near_misses=_near_misses(request, filtered, nodes, lacking),
        device_shortages=lacking.shortages,
    )


def _near_misses(
    request: SchedulingRequest,
    filtered: FilterResult,
    nodes: tuple[NodeVerdict, ...],
    lacking: PodShortages,
) -> tuple[NearMiss, ...]:
    if filtered.feasible.any():
        return ()
    gates = request.framework.profile.gates
    misses = find_near_misses(request.snapshot, request.pod, nodes, gates)
    return tuple(with_device_misses(misses, nodes, lacking))


def _preemption(result: Unschedulable) -> PreemptionAnswer:
    status, preemption = result.post_filter_status, result.preemption
    answer = PreemptionAnswer(status.code.title, status.plugin, status.message, status.reasons)
    if preemption is None or preemption.chosen is None:
        return msgspec.structs.replace(answer, clears_nomination=result.nominated_node_name == "")
    candidates = preemption.find_candidates().values()
    return msgspec.structs.replace(
        answer,
        nominated_node=preemption.chosen.node_name,
        candidates=tuple(map(_candidate, sorted(candidates, key=lambda each: each.node_name))),
        tied=preemption.tied,
    )


def _candidate(candidate: Candidate) -> PreemptionCandidate:
    victims = tuple(pod.key for pod in candidate.victims)
    return PreemptionCandidate(candidate.node_name, victims, candidate.num_violations)


def _waits_for(framework: Framework, plugins: Iterable[str]) -> tuple[Wakeup, ...]:
    return tuple(Wakeup(plugin, _awaited_events(framework, plugin)) for plugin in plugins)


def _awaited_events(framework: Framework, plugin: str) -> tuple[str, ...]:
    """The labels of the events that a plugin registered; an unknown plugin waits for any event.

    A gang also waits for its next pod, which moves its members without a registration.
    """
    registered = framework.events_by_plugin.get(plugin)
    if registered is None or any(each.event.is_wildcard for each in registered):
        return ("any event",)
    labels = {label for each in registered for label in registration_labels(each.event)}
    if plugin == GangScheduling.name:
        labels.add(event_label(UNSCHEDULED_POD_ADD))
    return tuple(sorted(labels))
