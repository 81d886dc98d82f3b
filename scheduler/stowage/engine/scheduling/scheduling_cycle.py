"""The scheduling cycle of one pod: from snapshot to decision.

PreFilter -> (nominated node, else all nodes) -> Filter
-> no node:   diagnosis -> PostFilter -> Unschedulable
-> one node:  Scheduled
-> more:      PreScore -> Score -> pick -> Scheduled

Where extenders have a say, Filter is followed by what they said, or by the question to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from stowage.api.status import SUCCESS, Status, error
from stowage.engine.scheduling.consulted import ConsultationNeeded, ReviewNeeded
from stowage.engine.scheduling.extender_filter import pass_extenders
from stowage.engine.scheduling.feasibility import (
    SEARCH_ALL,
    FeasibleNodes,
    NodeSearch,
    find_feasible_nodes,
)
from stowage.engine.scheduling.fit_error import NO_NODES_AVAILABLE, fit_error_message
from stowage.engine.scheduling.ranking import pick_node
from stowage.engine.scheduling.refusals import KnownRefusals, Question
from stowage.framework import (
    CycleState,
    Diagnosis,
    Framework,
    PluginFailed,
    Preemption,
    ScoreResult,
    diagnose_filter,
    diagnose_pre_filter,
)
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot


class Scheduled(msgspec.Struct, frozen=True):
    """The pod goes to a node.

    Attributes:
        node_name: The node.
        evaluated_nodes: Nodes that were filtered.
        feasible_nodes: Nodes that passed.
        feasible: The search behind it; for explanations, as long as the snapshot is current.
        scores: None if only one node was feasible: it was not scored.
    """

    node_name: str
    evaluated_nodes: int
    feasible_nodes: int
    feasible: FeasibleNodes
    scores: ScoreResult | None = None

    @property
    def next_start_row(self) -> int:
        """Where the next search starts, if it is limited."""
        return self.feasible.next_start_row


class Unschedulable(msgspec.Struct, frozen=True):
    """The pod goes nowhere for now.

    Attributes:
        diagnosis: Why.
        message: The same in words.
        evaluated_nodes: Nodes that were filtered.
        nominated_node_name: The node where PostFilter makes room; empty clears the pod's
            nomination, None leaves it alone.
        preemption: What came of trying to make room; None if nobody tried.
        post_filter_status: Of PostFilter, Success if it makes room.
    """

    diagnosis: Diagnosis
    message: str
    evaluated_nodes: int = 0
    nominated_node_name: str | None = None
    preemption: Preemption | None = None
    post_filter_status: Status = SUCCESS

    @property
    def unschedulable_plugins(self) -> frozenset[str]:
        """Who rejected it."""
        return self.diagnosis.unschedulable_plugins

    @property
    def plugins_to_hear(self) -> frozenset[str]:
        """Whose events may help: who rejected it, and who would have where room was made.

        kube-scheduler listens to the former only.
        """
        if self.preemption is None:
            return self.unschedulable_plugins
        return self.unschedulable_plugins | self.preemption.refused_by

    @property
    def pending_plugins(self) -> frozenset[str]:
        """Whose events help at once, without backoff."""
        return self.diagnosis.pending_plugins


class Failed(msgspec.Struct, frozen=True):
    """A plugin failed; the pod is tried again later."""

    status: Status


SchedulingResult: TypeAlias = Scheduled | Unschedulable | Failed
#: A result, or what extenders have to be asked before there is one.
SchedulingStep: TypeAlias = SchedulingResult | ConsultationNeeded | ReviewNeeded


def schedule_pod(
    framework: Framework,
    snapshot: Snapshot,
    pod: PodInfo,
    state: CycleState,
    choose: Callable[[int], int],
    search: NodeSearch = SEARCH_ALL,
) -> SchedulingResult:
    """Decide where a pod goes that no extender has a say about; see `step_pod`."""
    result = step_pod(framework, snapshot, pod, state, choose, search)
    if isinstance(result, ConsultationNeeded):
        text = f"extenders have to be asked about {len(result.node_names)} nodes first"
        return Failed(error(text))
    if isinstance(result, ReviewNeeded):
        text = f"extenders have to be asked about {len(result.candidates)} preemptions first"
        return Failed(error(text))
    return result


def step_pod(
    framework: Framework,
    snapshot: Snapshot,
    pod: PodInfo,
    state: CycleState,
    choose: Callable[[int], int],
    search: NodeSearch = SEARCH_ALL,
) -> SchedulingStep:
    """Decide where a pod goes; ``schedulingAlgorithm`` of v1.36.

    Where extenders have a say the answer may be whom they have to be asked about; call it again
    with their answer in `search` and a fresh `state`.

    Args:
        framework: The pod's profile.
        snapshot: The cluster.
        pod: The pod.
        state: A fresh one; Reserve and what follows need it afterwards.
        choose: Given the number of equally good nodes, which to take (in order of their rows).
        search: Nominations and limits.
    """
    if not snapshot.num_nodes:
        return Unschedulable(Diagnosis(0), NO_NODES_AVAILABLE, nominated_node_name="")
    refusals = search.refusals
    try:
        if refusals is None or search.consulted is not None or search.reviews_victims:
            return _decide(framework, snapshot, pod, state, choose, search)
        question = Question(framework, snapshot, pod, search.nominated)
        known = refusals.find(question, choose)
        return known or _decide_anew(question, state, choose, search, refusals)
    except PluginFailed as failure:
        return Failed(failure.status)


def _decide_anew(
    question: Question,
    state: CycleState,
    choose: Callable[[int], int],
    search: NodeSearch,
    refusals: KnownRefusals,
) -> SchedulingStep:
    """Decide, and remember a refusal."""
    thrown: list[int] = []

    def throw(sides: int) -> int:
        thrown.append(sides)
        return choose(sides)

    step = _decide(question.framework, question.snapshot, question.pod, state, throw, search)
    if isinstance(step, Unschedulable):
        refusals.keep(question, step, frozenset(state.skip_filter), tuple(thrown))
    return step


def _decide(
    framework: Framework,
    snapshot: Snapshot,
    pod: PodInfo,
    state: CycleState,
    choose: Callable[[int], int],
    search: NodeSearch,
) -> SchedulingStep:
    outcome = framework.run_pre_filter(state, pod, snapshot)
    if outcome.status.is_rejected:
        diagnosis = diagnose_pre_filter(outcome, snapshot.num_nodes)
        making_room = _MakingRoom(search, choose)
        return _refuse(framework, snapshot, pod, state, diagnosis, making_room)
    if not outcome.status.is_success:
        return Failed(outcome.status)
    found = find_feasible_nodes(framework, snapshot, pod, state, outcome, search)
    if len(found.rows) and search.consulted is not None:
        passed = pass_extenders(found, search.consulted, outcome, snapshot)
        if isinstance(passed, ConsultationNeeded):
            return passed
        found = passed
    if not len(found.rows):
        diagnosis = diagnose_filter(
            outcome, found.filtered, snapshot.num_nodes, found.failed_nomination
        )
        making_room = _MakingRoom(search, choose, found.num_evaluated)
        return _refuse(framework, snapshot, pod, state, diagnosis, making_room)
    return _choose_node(framework, snapshot, pod, state, choose, found)


def _choose_node(
    framework: Framework,
    snapshot: Snapshot,
    pod: PodInfo,
    state: CycleState,
    choose: Callable[[int], int],
    found: FeasibleNodes,
) -> SchedulingResult:
    scores = None
    row = int(found.rows[0])
    if len(found.rows) > 1:
        status = framework.run_pre_score(state, pod, snapshot.ascending_view(found.rows))
        if not status.is_success:
            return Failed(status)
        scores = framework.run_score(state, pod, snapshot, found.rows)
        if found.extender_scores is not None:
            scores = scores.with_extender_scores(found.extender_scores)
        row = pick_node(scores, choose)
    return Scheduled(snapshot.node_names[row], found.num_evaluated, len(found.rows), found, scores)


class _MakingRoom(msgspec.Struct, frozen=True):
    """What PostFilter goes by."""

    search: NodeSearch
    choose: Callable[[int], int]
    evaluated_nodes: int = 0


def _refuse(
    framework: Framework,
    snapshot: Snapshot,
    pod: PodInfo,
    state: CycleState,
    diagnosis: Diagnosis,
    making_room: _MakingRoom,
) -> Unschedulable | ReviewNeeded:
    search, evaluated = making_room.search, making_room.evaluated_nodes
    framework.prepare_post_filter(state, pod, search.nominated, making_room.choose, search.review)
    outcome = framework.run_post_filter(state, pod, snapshot, diagnosis)
    preemption = state.get(Preemption)
    makes_room = preemption is not None and preemption.chosen is not None
    if preemption is not None and makes_room and search.reviews_victims and search.review is None:
        return ReviewNeeded(tuple(preemption.find_candidates().values()), evaluated)
    diagnosis = diagnosis.with_post_filter_message(outcome.status.message)
    return Unschedulable(
        diagnosis,
        fit_error_message(diagnosis),
        evaluated,
        outcome.nominated_node_name,
        preemption,
        outcome.status,
    )
