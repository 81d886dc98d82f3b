"""The end of a failed attempt: requeue the pod and tell its owner the reason."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from stowage.api.instructions import EmitEvent, PodReference
from stowage.engine.released_nominations import release_unseen_nomination
from stowage.engine.state.engine_state import EngineState
from stowage.queue.queued_pod import QueuedPod
from stowage.state.pods.pod_info import PodInfo

#: Reasons of the PodScheduled condition.
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
SCHEDULING_GATED = "SchedulingGated"


class Failure(msgspec.Struct, frozen=True):
    """Why an attempt failed.

    Attributes:
        message: The text of the condition and of the event.
        is_error: Whether something failed; else the pod is unschedulable.
        rejected_by: The plugins that rejected the pod; their events move it. A pod that no plugin
            rejected is retried after a backoff.
        pending: The plugins that returned Pending; their events move the pod without backoff.
        nominated_node_name: None leaves the nomination as it is, empty clears it.
        generation: The generation of the pod that was tried; None for its newest version.
    """

    message: str
    is_error: bool = False
    rejected_by: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    nominated_node_name: str | None = ""
    generation: int | None = None


def handle_scheduling_failure(
    state: EngineState, queued: QueuedPod, info: PodInfo, failure: Failure, now: float
) -> None:
    """Requeue the pod, note its nomination, and write event and condition.

    ``handleSchedulingFailure`` of v1.36. The caller has emitted the result of the attempt.
    """
    queued.info = info
    queued.last_message = failure.message
    if info.scheduler_name not in state.frameworks:
        # The pod's profile was removed while the pod was being bound.
        state.queue.done(info.uid)
        state.statuses.forget(info.uid)
        state.cache.forget_pending_member(info.uid)
        state.outbox.report(f"Pod {info.key}", f"not tried again, no profile: {failure.message}")
        return
    nominated_before = state.queue.nominator.node_of(info.uid)
    place = state.queue.add_unschedulable(
        queued,
        now,
        rejected_by=set(failure.rejected_by),
        is_error=failure.is_error,
        pending=set(failure.pending),
    )
    if place is None:
        state.statuses.forget(info.uid)
        return
    info = queued.info
    node_name = failure.nominated_node_name
    if node_name is None:
        node_name = state.statuses.nomination(info.uid)
    state.queue.nominator.nominate(info, node_name)
    if nominated_before is not None:
        if nominated_before != node_name:
            release_unseen_nomination(state, info, nominated_before, now)
        # The nomination is at the API server or on its way, even if the watch has not shown it.
        info = replace(info, nominated_node_name=nominated_before)
    state.outbox.emit(failed_scheduling_event(info, failure.message, state.last_decision))
    reason = SCHEDULER_ERROR if failure.is_error else UNSCHEDULABLE
    generation = info.generation if failure.generation is None else failure.generation
    patch = state.statuses.unschedulable(
        info.reference, generation, (reason, failure.message), failure.nominated_node_name
    )
    if patch is not None:
        state.outbox.emit(patch)


def failed_scheduling_event(info: PodInfo, message: str, decision: int = 0) -> EmitEvent:
    """The Event that tells the pod's owner why it was not scheduled; `decision` 0 is no attempt."""
    return EmitEvent(
        pod=info.reference,
        event_type="Warning",
        reason="FailedScheduling",
        action="Scheduling",
        note=message,
        scheduler_name=info.scheduler_name,
        resource_version=info.resource_version,
        decision=decision,
    )


def report_invalid_pod(
    state: EngineState,
    pod: PodReference,
    message: str,
    scheduler_name: str,
    generation: int = 0,
) -> None:
    """Tell the owner of a pod once that the pod cannot be decoded; ignore other schedulers' pods.

    The Event is written together with the condition, and only if the condition changes.
    """
    if scheduler_name not in state.frameworks:
        return
    patch = state.statuses.unschedulable(pod, generation, (SCHEDULER_ERROR, message), None)
    if patch is not None:
        state.outbox.emit(
            EmitEvent(pod, "Warning", "FailedScheduling", "Scheduling", message, scheduler_name)
        )
        state.outbox.emit(patch)


def report_gated_pods(state: EngineState) -> None:
    """Write the condition of pods gated by a plugin that asks for it.

    Only a replica that schedules calls this. The API server writes the condition of pods with
    scheduling gates.
    """
    for info, message in state.queue.drain_gated():
        if info.pod_class.scheduling_gates:
            continue
        condition = (SCHEDULING_GATED, message)
        patch = state.statuses.unschedulable(info.reference, info.generation, condition, None)
        if patch is not None:
            state.outbox.emit(patch)
