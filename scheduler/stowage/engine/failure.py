"""What follows when a pod could not be placed or bound; ``handleSchedulingFailure`` of v1.36."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from stowage.api.instructions import EmitEvent
from stowage.engine.machine import Machine
from stowage.queue.queued_pod import QueuedPod
from stowage.state.pods.pod_info import PodInfo

#: Reasons of the PodScheduled condition.
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


class Failure(msgspec.Struct, frozen=True):
    """Why a pod goes back to the queue.

    Attributes:
        message: The text of the condition and of the event.
        is_error: A fault rather than a verdict.
        rejected_by: The plugins that found the pod unschedulable; their events bring it back. A
            pod that none did is tried again after a backoff.
        pending: Plugins that wait for something and want the pod back without backoff.
        nominated_node_name: None leaves the nomination alone, empty clears it.
    """

    message: str
    is_error: bool = False
    rejected_by: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    nominated_node_name: str | None = ""


def give_back_to_queue(
    machine: Machine, queued: QueuedPod, info: PodInfo, failure: Failure, now: float
) -> None:
    """Requeue the pod, note its nomination, and tell its owner why, by event and condition."""
    queued.info = info
    if info.scheduler_name not in machine.frameworks:
        # Its profile went while it was being bound: nobody here will try it again.
        machine.queue.done(info.uid)
        machine.statuses.forget(info.uid)
        machine.problem(f"Pod {info.key}", f"not tried again, no profile: {failure.message}")
        return
    nominated_before = machine.queue.nominator.node_of(info.uid)
    place = machine.queue.add_unschedulable(
        queued,
        now,
        rejected_by=set(failure.rejected_by),
        is_error=failure.is_error,
        pending=set(failure.pending),
    )
    if place is None:
        machine.statuses.forget(info.uid)
        return
    info = queued.info
    machine.queue.nominator.nominate(info, failure.nominated_node_name)
    if nominated_before is not None:
        # Written or about to be, whether or not the watch has shown it.
        info = replace(info, nominated_node_name=nominated_before)
    report_failure(machine, info, failure)


def report_failure(machine: Machine, info: PodInfo, failure: Failure) -> None:
    """FailedScheduling event and, if it says something new, PodScheduled=False."""
    machine.emit(
        EmitEvent(
            pod=info.reference,
            event_type="Warning",
            reason="FailedScheduling",
            action="Scheduling",
            note=failure.message,
            scheduler_name=info.scheduler_name,
            resource_version=info.resource_version,
        )
    )
    reason = SCHEDULER_ERROR if failure.is_error else UNSCHEDULABLE
    said, nominated = (reason, failure.message), failure.nominated_node_name
    change = machine.statuses.change(info.reference, info.generation, said, nominated)
    if change is not None:
        machine.emit(change)
