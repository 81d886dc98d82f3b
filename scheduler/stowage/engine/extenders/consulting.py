"""Asking extenders about nodes and victims, and reading their answers."""

from __future__ import annotations

from stowage.api.config.extenders import EXTENDER_PLUGIN
from stowage.api.events import ExtendersAnswered, VictimsReviewed
from stowage.api.instructions import ConsultExtenders, ConsultOnVictims, VictimsOnNode
from stowage.api.status import Status, unresolvable, unschedulable
from stowage.engine.scheduling import ExtenderAnswers, ExtendersNeeded, VictimReviewNeeded
from stowage.engine.state.attempt import Attempt
from stowage.engine.state.consultations import Consultation
from stowage.engine.state.engine_state import EngineState
from stowage.framework import ReviewedVictims, VictimReview
from stowage.state.pods.pod_info import PodInfo


def extenders_answered(state: EngineState, event: ExtendersAnswered, _now: float) -> None:
    """The extenders have answered about nodes; the pod is attempted again."""
    state.consultations.answer(event)


def victims_reviewed(state: EngineState, event: VictimsReviewed, _now: float) -> None:
    """The extenders have answered about victims; the pod is attempted again."""
    state.consultations.answer(event)


def consult_extenders(
    state: EngineState, attempt: Attempt, question: ExtendersNeeded | VictimReviewNeeded
) -> None:
    """Send a question to the extenders, or let the pod wait until they have capacity."""
    queued, info, started = attempt.queued, attempt.info, attempt.started
    if not state.consultations.has_capacity:
        framework = state.frameworks[info.scheduler_name]
        key = framework.sort_key(info, queued.queued_at)
        state.consultations.wait(queued, info, started, key)
    elif isinstance(question, ExtendersNeeded):
        consultation = state.consultations.ask(queued, info, started, question.node_names)
        extenders = state.extenders.to_consult(info.spec)
        state.outbox.emit(
            ConsultExtenders(info.reference, consultation.number, question.node_names, extenders)
        )
    else:
        consultation = state.consultations.ask_review(queued, info, started, attempt.consultation)
        candidates = {
            each.node_name: VictimsOnNode(
                tuple(victim.reference for victim in each.victims), each.num_violations
            )
            for each in question.candidates
        }
        extenders = state.extenders.to_review(info.spec)
        state.outbox.emit(
            ConsultOnVictims(info.reference, consultation.number, candidates, extenders)
        )


def drop_consultation(state: EngineState, uid: str) -> None:
    """End a pod's attempt that waits for extenders: the pod is gone, bound or invalid."""
    if state.consultations.remove(uid):
        state.queue.delete(uid)
        state.queue.done(uid)


def extender_answers(
    state: EngineState, info: PodInfo, consultation: Consultation | None
) -> ExtenderAnswers | None:
    """The extenders' answers about nodes so far; None if no extender filters or prioritizes."""
    extenders = state.extenders.to_consult(info.spec) if state.extenders else ()
    if not extenders:
        return None
    any_filters = state.extenders.any_filters(extenders)
    if consultation is None or consultation.answer is None or consultation.asked is None:
        return ExtenderAnswers(any_filters)
    answer = consultation.answer
    return ExtenderAnswers(
        any_filters,
        asked=frozenset(consultation.asked),
        passed=frozenset(answer.passed),
        rejected=_rejected(answer),
        scores=answer.scores,
    )


def victim_review(consultation: Consultation | None) -> VictimReview | None:
    """The extenders' answer about victims; None before they have answered."""
    review = None if consultation is None else consultation.review
    if review is None:
        return None
    by_node = {
        name: ReviewedVictims(tuple(pod.uid for pod in left.pods), left.num_violations)
        for name, left in review.candidates.items()
    }
    return VictimReview(by_node, review.error)


def _rejected(answer: ExtendersAnswered) -> dict[str, Status]:
    statuses = {
        name: unschedulable(reason, plugin=EXTENDER_PLUGIN)
        for name, reason in answer.failed.items()
    }
    for name, reason in answer.failed_and_unresolvable.items():
        statuses[name] = unresolvable(reason, plugin=EXTENDER_PLUGIN)
    return statuses
