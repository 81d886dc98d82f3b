"""The scheduling algorithm: one pod and one snapshot in, one decision out.

PreFilter -> Filter (nominated node, else all nodes) -> extenders
-> no node:        diagnosis -> PostFilter -> Unschedulable
-> one node:       Scheduled
-> several nodes:  PreScore -> Score -> select host -> Scheduled
"""

from __future__ import annotations

from stowage.api.interruptible import Interruptible, finish
from stowage.engine.scheduling.extender_filter import find_nodes_that_pass_extenders
from stowage.engine.scheduling.feasible_nodes import find_nodes_that_fit_pod
from stowage.engine.scheduling.node_scoring import prioritize_nodes, select_host
from stowage.engine.scheduling.outcome import (
    ExtendersNeeded,
    Failed,
    Scheduled,
    SchedulingOutcome,
    Unschedulable,
    VictimReviewNeeded,
)
from stowage.engine.scheduling.refusal_cache import RefusalCache
from stowage.engine.scheduling.request import SchedulingRequest
from stowage.framework import (
    Diagnosis,
    PluginFailed,
    Preemption,
    diagnose_filter,
    diagnose_pre_filter,
    fit_error_message,
    is_plain,
)

NO_NODES_AVAILABLE = "no nodes available to schedule pods"


def schedule_pod(
    request: SchedulingRequest, refusals: RefusalCache | None = None
) -> SchedulingOutcome:
    """`scheduling_steps` at once."""
    return finish(scheduling_steps(request, refusals))


def scheduling_steps(
    request: SchedulingRequest, refusals: RefusalCache | None = None
) -> Interruptible[SchedulingOutcome]:
    """Decide which node a pod goes to; ``schedulePod`` of v1.36, and PostFilter if none fits.

    PostFilter has several steps, and a pod with many terms a step for each phase. Between steps the
    cluster must not change.

    If extenders take part, the outcome may be a question to them. The caller then asks again with
    their answers in the request and a fresh cycle state.

    Args:
        request: The pod, the cluster and the rules of the search.
        refusals: Answers pods like earlier pods of their class; None evaluates every pod.
    """
    if not request.num_nodes:
        return Unschedulable(Diagnosis(0), NO_NODES_AVAILABLE, nominated_node_name="")
    if request.involves_extenders:
        refusals = None
    try:
        refusal = None if refusals is None else refusals.find(request)
        if refusal is not None:
            return refusal
        num_ties = len(request.ties.sizes)
        outcome = yield from _run_plugins(request, refusals)
        if refusals is not None and isinstance(outcome, Unschedulable):
            refusals.keep(request, outcome, tuple(request.ties.sizes[num_ties:]))
        return outcome
    except PluginFailed as failure:
        return Failed(failure.status)


def _run_plugins(
    request: SchedulingRequest, refusals: RefusalCache | None
) -> Interruptible[SchedulingOutcome]:
    """PreFilter to Score; PostFilter if no node is left."""
    snapshot, has_many_terms = request.snapshot, request.pod.pod_class.has_many_terms
    pre_filtered = request.framework.run_pre_filter(
        request.cycle_state, request.pod, snapshot, request.before
    )
    request.cycle_state.mark("PreFilter")
    if pre_filtered.status.is_rejected:
        diagnosis = diagnose_pre_filter(pre_filtered, request.num_nodes)
        return (yield from _run_post_filter(request, diagnosis, 0))
    if not pre_filtered.status.is_success:
        return Failed(pre_filtered.status)
    refusal = None if refusals is None else refusals.find_alike(request)
    if refusal is not None:
        return refusal
    if has_many_terms:
        yield
    found = find_nodes_that_fit_pod(request, pre_filtered)
    if len(found.rows) and request.extender_answers is not None:
        passed = find_nodes_that_pass_extenders(
            found, request.extender_answers, pre_filtered, snapshot
        )
        if isinstance(passed, ExtendersNeeded):
            return passed
        found = passed
    request.cycle_state.mark("Filter")
    num_feasible = len(found.rows)
    if not num_feasible:
        diagnosis = diagnose_filter(
            pre_filtered, found.filtered, request.num_nodes, found.failed_nomination
        )
        return (yield from _run_post_filter(request, diagnosis, found.num_evaluated))
    scores, chosen, tie = None, 0, None
    if num_feasible > 1:
        if has_many_terms:
            yield
        scores = prioritize_nodes(request, found)
        chosen, tie = select_host(request, scores)
        request.cycle_state.mark("Score")
    node_name = snapshot.node_names[int(found.rows[chosen])]
    serves_class = pre_filtered.node_names is None and is_plain(request.pod)
    return Scheduled(
        node_name, found.num_evaluated, num_feasible, found, scores, chosen, tie, serves_class
    )


def _run_post_filter(
    request: SchedulingRequest, diagnosis: Diagnosis, num_evaluated: int
) -> Interruptible[Unschedulable | VictimReviewNeeded]:
    """Run PostFilter, which may find a node on which preemption helps the pod."""
    if not request.runs_post_filter:
        return Unschedulable(diagnosis, fit_error_message(diagnosis), num_evaluated)
    framework, state, pod = request.framework, request.cycle_state, request.pod
    framework.prepare_post_filter(
        state, pod, request.nominated, request.ties, request.victim_review
    )
    outcome = yield from framework.run_post_filter(state, pod, request.snapshot, diagnosis)
    state.mark("PostFilter")
    preemption = state.get(Preemption)
    if (
        preemption is not None
        and preemption.chosen is not None
        and request.reviews_victims
        and request.victim_review is None
    ):
        return VictimReviewNeeded(tuple(preemption.find_candidates().values()))
    diagnosis = diagnosis.with_post_filter_message(outcome.status.message)
    return Unschedulable(
        diagnosis,
        fit_error_message(diagnosis),
        num_evaluated,
        outcome.nominated_node_name,
        preemption,
        outcome.status,
    )
