"""One scheduling attempt: a pod popped from the queue gets a node, or a reason why not."""

from __future__ import annotations

from msgspec.structs import replace

from scheduler.api.instructions import AttemptResult, EmitEvent
from scheduler.api.status import error
from scheduler.binding import BindingCycle
from scheduler.cycle import Failed, NodeSearch, Scheduled, Unschedulable, schedule_pod
from scheduler.engine.commitments import start_binding
from scheduler.engine.failure import Failure, give_back_to_queue
from scheduler.engine.machine import Machine
from scheduler.framework import CycleState, Framework
from scheduler.queue.queued_pod import QueuedPod
from scheduler.state.pod_info import PodInfo


def attempt_pod(machine: Machine, queued: QueuedPod, now: float) -> None:
    """Run one scheduling cycle for a pod in flight; ``scheduleOnePod`` of v1.36."""
    info = queued.info
    framework = machine.frameworks.get(info.scheduler_name)
    if framework is None or _skip(machine, info):
        machine.queue.done(info.uid)
        return
    started = machine.timer()
    state = CycleState()
    outcome = _decide(machine, framework, state, info)
    duration = machine.timer() - started
    machine.emit(_attempt_result(queued, outcome, duration))
    if isinstance(outcome, Scheduled):
        cycle = BindingCycle(queued, info, outcome.node_name, framework, state)
        machine.cache.assume_pod(info, outcome.node_name)
        machine.queue.nominator.remove(info.uid)
        start_binding(machine, cycle, now)
    else:
        give_back_to_queue(machine, queued, info, _failure(outcome), now)


def _skip(machine: Machine, info: PodInfo) -> bool:
    """Whether there is nothing to decide: the pod is being deleted, or has a node already."""
    if info.terminating:
        note = f"skip schedule deleting pod: {info.key}"
        machine.emit(
            EmitEvent(
                info.reference,
                "Warning",
                "FailedScheduling",
                "Scheduling",
                note,
                info.scheduler_name,
            )
        )
        return True
    return machine.cache.get_pod(info.uid) is not None


def _decide(
    machine: Machine, framework: Framework, state: CycleState, info: PodInfo
) -> Scheduled | Unschedulable | Failed:
    """The cycle's answer; a fault in it is an error of this pod and of no other."""
    nominator = machine.queue.nominator
    search = NodeSearch(
        nominated=tuple(
            (nominated, node_name)
            for node_name in nominator.nodes()
            for nominated in nominator.pods_on(node_name)
        ),
        percentage=framework.profile.percentage_of_nodes_to_score,
    )
    snapshot = machine.cache.snapshot()
    try:
        return schedule_pod(framework, snapshot, info, state, machine.choose, search)
    except Exception as fault:
        machine.problem(f"Pod {info.key}", f"scheduling cycle: {fault!r}")
        return Failed(error(f"scheduling cycle: {fault!r}"))


def _attempt_result(
    queued: QueuedPod, outcome: Scheduled | Unschedulable | Failed, duration_s: float
) -> AttemptResult:
    """What the shell logs and counts."""
    base = AttemptResult(
        pod=queued.info.reference,
        result="error",
        scheduler_name=queued.info.scheduler_name,
        attempts=queued.attempts,
        duration_s=duration_s,
    )
    match outcome:
        case Scheduled():
            return replace(
                base,
                result="scheduled",
                node_name=outcome.node_name,
                evaluated_nodes=outcome.evaluated_nodes,
                feasible_nodes=outcome.feasible_nodes,
            )
        case Unschedulable():
            return replace(
                base,
                result="unschedulable",
                message=outcome.message,
                evaluated_nodes=outcome.evaluated_nodes,
                unschedulable_plugins=tuple(sorted(outcome.unschedulable_plugins)),
            )
        case Failed():
            return replace(base, message=outcome.status.message)


def _failure(outcome: Unschedulable | Failed) -> Failure:
    if isinstance(outcome, Failed):
        return Failure(outcome.status.message, is_error=True)
    return Failure(
        outcome.message,
        rejected_by=outcome.unschedulable_plugins,
        pending=outcome.pending_plugins,
        nominated_node_name=outcome.nominated_node_name,
    )
