"""Asking extenders and hearing from them, as far as the engine has a part in it."""

from __future__ import annotations

from stowage.api.config.extenders import EXTENDER_PLUGIN
from stowage.api.events import ExtendersAnswered, VictimsReviewed
from stowage.api.instructions import ConsultExtenders, ConsultOnVictims, VictimsOnNode
from stowage.api.status import Status, unresolvable, unschedulable
from stowage.engine.extenders.consultations import Consultation
from stowage.engine.machine import Machine
from stowage.engine.scheduling import ConsultationNeeded, Consulted, ReviewNeeded
from stowage.framework import ReviewedVictims, VictimReview
from stowage.queue.queued_pod import QueuedPod
from stowage.state.pods.pod_info import PodInfo


def extenders_answered(machine: Machine, event: ExtendersAnswered, _now: float) -> None:
    """Let the pod go on when it is next its turn; an answer nobody waits for is dropped."""
    machine.consultations.answer(event)


def victims_reviewed(machine: Machine, event: VictimsReviewed, _now: float) -> None:
    """The same about the victims of a preemption."""
    machine.consultations.answer(event)


def start_review(
    machine: Machine,
    queued: QueuedPod,
    info: PodInfo,
    needed: ReviewNeeded,
    started: float,
    before: Consultation | None,
) -> None:
    """Have extenders review the victims for a pod in flight, or let it wait for their time.

    `before` is what they said about its nodes in this attempt.
    """
    if not machine.consultations.has_place:
        framework = machine.frameworks[info.scheduler_name]
        key = framework.sort_key(info, queued.queued_at)
        machine.consultations.wait(queued, info, started, key)
        return
    consultation = machine.consultations.ask_review(queued, info, started, before)
    candidates = {
        each.node_name: VictimsOnNode(
            tuple(victim.reference for victim in each.victims), each.num_violations
        )
        for each in needed.candidates
    }
    extenders = machine.extenders.to_review(info.spec)
    machine.emit(ConsultOnVictims(info.reference, consultation.number, candidates, extenders))


def reviewed(consultation: Consultation) -> VictimReview | None:
    """What the extenders made of the victims; None if they have not been asked."""
    review = consultation.review
    if review is None:
        return None
    by_node = {
        name: ReviewedVictims(tuple(pod.uid for pod in left.pods), left.num_violations)
        for name, left in review.candidates.items()
    }
    return VictimReview(by_node, review.error)


def start_consultation(
    machine: Machine, queued: QueuedPod, info: PodInfo, needed: ConsultationNeeded, started: float
) -> None:
    """Send a pod in flight to the extenders, or let it wait until they have time for it."""
    if not machine.consultations.has_place:
        framework = machine.frameworks[info.scheduler_name]
        key = framework.sort_key(info, queued.queued_at)
        machine.consultations.wait(queued, info, started, key)
        return
    asked = needed.node_names
    consultation = machine.consultations.ask(queued, info, started, asked)
    extenders = machine.extenders.to_consult(info.spec)
    machine.emit(ConsultExtenders(info.reference, consultation.number, asked, extenders))


def drop_consultation(machine: Machine, uid: str) -> None:
    """The pod is gone, bound by somebody else or unusable: its attempt ends here."""
    if machine.consultations.remove(uid):
        machine.queue.delete(uid)
        machine.queue.done(uid)


def not_consulted(machine: Machine, info: PodInfo) -> Consulted | None:
    """What is known of the extenders' opinion before they are asked; None if none has a say."""
    extenders = machine.extenders.to_consult(info.spec) if machine.extenders else ()
    if not extenders:
        return None
    return Consulted(machine.extenders.any_filters(extenders))


def consulted(machine: Machine, consultation: Consultation) -> Consulted | None:
    """What the extenders have said so far."""
    known = not_consulted(machine, consultation.info)
    answer = consultation.answer
    if known is None or answer is None or consultation.asked is None:
        return known
    return Consulted(
        known.any_filters,
        asked=frozenset(consultation.asked),
        passed=frozenset(answer.passed),
        rejected=_rejected(answer),
        scores=answer.scores,
    )


def _rejected(answer: ExtendersAnswered) -> dict[str, Status]:
    statuses = {
        name: unschedulable(reason, plugin=EXTENDER_PLUGIN)
        for name, reason in answer.failed.items()
    }
    for name, reason in answer.failed_and_unresolvable.items():
        statuses[name] = unresolvable(reason, plugin=EXTENDER_PLUGIN)
    return statuses
