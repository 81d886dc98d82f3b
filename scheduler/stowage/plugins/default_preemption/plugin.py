"""Plugin DefaultPreemption: PostFilter chooses victims, PreEnqueue gates the pod meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.interruptible import Interruptible, finish
from stowage.api.status import SUCCESS, Status, error, unresolvable, unschedulable
from stowage.framework import (
    CycleState,
    Diagnosis,
    DryRun,
    EventRegistration,
    PluginTraits,
    Preemption,
    PreemptionBarred,
    VictimReview,
    fit_error_message,
)
from stowage.plugins.default_preemption.args import DefaultPreemptionArgs
from stowage.plugins.default_preemption.budgets import is_beyond_budgets
from stowage.plugins.default_preemption.candidates import (
    PROTECTED,
    ReviewInvalid,
    choose_candidate,
    choose_reviewed,
    find_candidates,
    reviewed_candidates,
)
from stowage.plugins.default_preemption.eligibility import (
    NEVER,
    VICTIM_TERMINATING,
    awaited_victim,
    is_never_eligible,
)
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_CANDIDATE = "no candidate node for preemption"
WAITING = "waiting for the preemption for this pod to be finished"
_BUDGET_CHANGED = ClusterEvent(
    EventResource.POD_DISRUPTION_BUDGET, ActionType.UPDATE | ActionType.DELETE
)
_HELD = unresolvable(WAITING)
Outcome = tuple[Status, str | None]


class DefaultPreemption:
    """Nominates the node where evicting pods of lower priority costs least."""

    name = "DefaultPreemption"
    traits = PluginTraits(rejects_per_class=True, reads_only_node_demand=True)

    def __init__(self, args: DefaultPreemptionArgs) -> None:
        self._args = args
        self._is_preempting: Callable[[str], bool] = lambda _uid: False

    def gate_by(self, is_preempting: Callable[[str], bool]) -> None:
        """Set the function that says whether evictions for a pod, by UID, are under way."""
        self._is_preempting = is_preempting

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Reject the pod until the eviction of its last victim has been accepted."""
        return _HELD if self._is_preempting(pod.uid) else SUCCESS

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Deleted assigned pods, so that the queue runs PreEnqueue again after them.

        The hint is always Skip: the plugins that rejected the pod decide whether the event helps.
        If budgets are respected, every change of a budget may help.
        """
        gone = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
        registrations = (EventRegistration(gone, _skip, per_demand=True),)
        if not self._args.respects_budgets:
            return registrations
        return (*registrations, EventRegistration(_BUDGET_CHANGED, per_class=True))

    def post_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis
    ) -> Outcome:
        """`post_filter_in_steps` at once."""
        return finish(self.post_filter_in_steps(state, pod, snapshot, diagnosis))

    def post_filter_in_steps(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis
    ) -> Interruptible[Outcome]:
        """The node to nominate, or the reason why there is none; ``Evaluator.Preempt`` of v1.36."""
        state.write(Preemption())
        barred = state.get(PreemptionBarred)
        if barred is not None:
            return _rejected(barred.reason), None
        review = state.get(VictimReview)
        if review is not None:
            return self._take_review(state, snapshot, review)
        if is_never_eligible(pod):
            return _rejected(NEVER), None
        awaited = awaited_victim(pod, snapshot, diagnosis)
        if awaited is not None:
            state.write(Preemption(awaited=awaited.uid))
            return _rejected(VICTIM_TERMINATING), None
        rows = np.flatnonzero(diagnosis.resolvable(snapshot))
        if not len(rows):
            return _not_helpful(snapshot, 0, Counter())
        dry_run = state.read(DryRun)
        offset = dry_run.choose(len(rows))
        wanted = self._args.num_candidates(len(rows))
        search = yield from find_candidates(
            dry_run,
            snapshot,
            np.concatenate((rows[offset:], rows[:offset])),
            wanted,
            respects_budgets=self._args.respects_budgets,
        )
        if not search.num_found:
            errors = search.errors()
            if errors:
                return error(f"preemption: {_aggregate(errors)}"), None
            reasons, refused_by = search.count_reasons()
            if search.num_protected:
                refused_by.add(self.name)
            state.write(Preemption(refused_by=frozenset(refused_by)))
            return _not_helpful(snapshot, len(rows) - search.num_unwanted, reasons)
        preemption = choose_candidate(search, dry_run)
        return _nominate(state, preemption)

    def pod_group_post_filter(self, victims: Sequence[PodInfo], snapshot: Snapshot) -> Status:
        """Reject victims of a pod group that violate a budget, if budgets are respected."""
        if self._args.respects_budgets and is_beyond_budgets(victims, snapshot.budgets):
            return unschedulable(PROTECTED)
        return SUCCESS

    def _take_review(self, state: CycleState, snapshot: Snapshot, review: VictimReview) -> Outcome:
        """Nominate from the candidates that the extenders left; clear the nomination if none.

        kube-scheduler keeps the nomination in that case. Two pods of one priority nominated to one
        node then block each other for as long as the extenders let neither preempt.
        """
        if review.error:
            return error(f"preemption: {review.error}"), None
        try:
            candidates = reviewed_candidates(review, snapshot)
        except ReviewInvalid as invalid:
            return error(f"preemption: {invalid}"), None
        if not candidates:
            return _rejected(NO_CANDIDATE), ""
        if self._args.respects_budgets:
            budgets = snapshot.budgets
            candidates = [
                each for each in candidates if not is_beyond_budgets(each.victims, budgets)
            ]
        if not candidates:
            state.write(Preemption(refused_by=frozenset({self.name})))
            return _rejected(PROTECTED), ""
        return _nominate(state, choose_reviewed(candidates, state.read(DryRun)))


def _nominate(state: CycleState, preemption: Preemption) -> Outcome:
    assert preemption.chosen is not None  # noqa: S101 - there was a candidate to choose
    state.write(preemption)
    return SUCCESS, preemption.chosen.node_name


def _rejected(why: str) -> Status:
    return unschedulable(f"preemption: {why}")


def _not_helpful(snapshot: Snapshot, num_judged: int, reasons: Counter[str]) -> Outcome:
    """The rejection when no eviction helps; it clears the pod's nomination."""
    num_nodes = snapshot.num_nodes
    if num_nodes > num_judged:
        reasons[NOT_HELPFUL] += num_nodes - num_judged
    return _rejected(fit_error_message(Diagnosis(num_nodes, reasons))), ""


def _aggregate(texts: Sequence[str]) -> str:
    """As Go prints several errors."""
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _skip(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    del pod, old, new
    return QueueingHint.SKIP
