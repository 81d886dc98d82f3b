"""What the watches report: into the cache, into the queue, and to the pods it may help."""

from __future__ import annotations

from scheduler.api.errors import InvalidObject
from scheduler.api.events import (
    ActionType,
    AssignedPodGone,
    AssignedPodSeen,
    ClusterEvent,
    DisruptionBudgetGone,
    DisruptionBudgetSeen,
    EventResource,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    ObjectInvalid,
    PendingPodGone,
    PendingPodSeen,
    WorkloadGone,
    WorkloadSeen,
)
from scheduler.api.instructions import EmitEvent, PodReference
from scheduler.api.pod import Pod
from scheduler.engine.commitments import ASSIGNED_POD_DELETE, pending_pod_gone
from scheduler.engine.extenders import drop_consultation
from scheduler.engine.machine import Machine
from scheduler.state.pod_info import PodInfo, make_pod_info

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)
ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)

#: One event per kind of change, in the order kube-scheduler reports them.
NODE_UPDATES = tuple(ClusterEvent(EventResource.NODE, action) for action in ActionType.UPDATE_NODE)
ASSIGNED_POD_UPDATES = tuple(
    ClusterEvent(EventResource.ASSIGNED_POD, action) for action in ActionType.UPDATE_POD
)


def pending_pod_seen(machine: Machine, event: PendingPodSeen, now: float) -> None:
    """Queue a new pod, or update it where it is: queued, in flight, or being bound."""
    info = _pod_info(machine, event.pod)
    if info is None:
        drop_consultation(machine, event.pod.metadata.uid)
        machine.queue.delete(event.pod.metadata.uid)
        return
    if info.scheduler_name not in machine.frameworks:
        return
    cycle = machine.bindings.get(info.uid)
    if cycle is not None:
        cycle.info = info
        cycle.left_pending = False
    elif machine.cache.get_pod(info.uid) is not None:
        # The watch of pending pods lags behind the one of assigned pods.
        return
    elif machine.queue.get(info.uid) is None:
        machine.queue.add(info, now)
    else:
        machine.queue.update(info, now)
        consultation = machine.consultations.get(info.uid)
        if consultation is not None:
            consultation.info = info


def pending_pod_left(machine: Machine, event: PendingPodGone, now: float) -> None:
    """Take a pod out of the queue; its binding cycle, if any, has its own say."""
    if pending_pod_gone(machine, event.uid, now):
        return
    drop_consultation(machine, event.uid)
    machine.queue.delete(event.uid)
    machine.reported.pop(event.uid, None)


def assigned_pod_seen(machine: Machine, event: AssignedPodSeen, now: float) -> None:
    """Account for a pod on its node, and let pods that care about neighbours know."""
    info = _pod_info(machine, event.pod)
    if info is None:
        return
    if info.uid not in machine.bindings:
        drop_consultation(machine, info.uid)
        machine.queue.delete(info.uid)
        machine.reported.pop(info.uid, None)
    change = machine.cache.pod_seen(info)
    if change.ignored:
        return
    machine.unconfirmed.pop(info.uid, None)
    if change.moved_from is not None:
        machine.problem(
            f"Pod {info.key}", f"assumed on node {change.moved_from}, but bound to {info.node_name}"
        )
    if change.actions & ActionType.ADD:
        machine.queue.move_on_event(ASSIGNED_POD_ADD, None, info, now)
        return
    for update in ASSIGNED_POD_UPDATES:
        if update.action & change.actions:
            machine.queue.move_on_event(update, change.old, info, now)


def assigned_pod_gone(machine: Machine, event: AssignedPodGone, now: float) -> None:
    """Free what the pod held and wake the pods that may now fit."""
    machine.unconfirmed.pop(event.uid, None)
    cycle = machine.bindings.get(event.uid)
    if cycle is not None:
        cycle.was_deleted = True
    info = machine.cache.pod_gone(event.uid)
    if info is not None:
        machine.queue.move_on_event(ASSIGNED_POD_DELETE, info, None, now)


def node_seen(machine: Machine, event: NodeSeen, now: float) -> None:
    """Take in a node and wake pods by what changed about it."""
    try:
        change = machine.cache.node_seen(event.node)
    except InvalidObject as invalid:
        machine.problem(f"Node {event.node.metadata.name}", str(invalid))
        return
    if change.actions & ActionType.ADD:
        machine.queue.move_on_event(NODE_ADD, None, event.node, now)
        return
    for update in NODE_UPDATES:
        if update.action & change.actions:
            machine.queue.move_on_event(update, change.old, event.node, now)


def node_gone(machine: Machine, event: NodeGone, now: float) -> None:
    """Forget a node; its pods stay accounted for until they go."""
    node = machine.cache.node_gone(event.name)
    if node is not None:
        machine.queue.move_on_event(NODE_DELETE, node, None, now)


def namespace_seen(machine: Machine, event: NamespaceSeen, _now: float) -> None:
    """Namespace labels decide which pods a namespaceSelector means."""
    machine.cache.namespace_seen(event.namespace)


def namespace_gone(machine: Machine, event: NamespaceGone, _now: float) -> None:
    """A namespace without an object has no labels."""
    machine.cache.namespace_gone(event.name)


def workload_seen(machine: Machine, event: WorkloadSeen, _now: float) -> None:
    """Services, controllers and sets give pods their default spreading."""
    machine.cache.workload_seen(event.kind, event.namespace, event.name, event.selector)


def workload_gone(machine: Machine, event: WorkloadGone, _now: float) -> None:
    """A Service, controller or set is gone."""
    machine.cache.workload_gone(event.kind, event.namespace, event.name)


def disruption_budget_seen(machine: Machine, event: DisruptionBudgetSeen, _now: float) -> None:
    """A budget says which victims cost more than others."""
    machine.cache.budget_seen(event.budget)


def disruption_budget_gone(machine: Machine, event: DisruptionBudgetGone, _now: float) -> None:
    """A budget is gone."""
    machine.cache.budget_gone(event.namespace, event.name)


def object_invalid(machine: Machine, event: ObjectInvalid, _now: float) -> None:
    """Report an object that could not be decoded; a pod's owner is told by an event."""
    name = f"{event.namespace}/{event.name}" if event.namespace else event.name
    text = f'{event.field}: "{event.value}" (expected {event.expectation})'
    machine.problem(f"{event.kind} {name}", text)
    if event.kind == "Pod" and event.uid:
        drop_consultation(machine, event.uid)
        machine.queue.delete(event.uid)
        _tell_owner(machine, PodReference(event.namespace, event.name, event.uid), text)


def _pod_info(machine: Machine, pod: Pod) -> PodInfo | None:
    """The pod as scheduling sees it, or None where it has an impossible value (reported)."""
    try:
        return make_pod_info(pod, machine.cache.classes)
    except InvalidObject as invalid:
        meta = pod.metadata
        machine.problem(f"Pod {meta.namespace}/{meta.name}", str(invalid))
        reference = PodReference(meta.namespace, meta.name, meta.uid)
        _tell_owner(machine, reference, str(invalid), pod.spec.scheduler_name)
        return None


def _tell_owner(
    machine: Machine, pod: PodReference, text: str, scheduler_name: str = "stowage"
) -> None:
    machine.emit(EmitEvent(pod, "Warning", "FailedScheduling", "Scheduling", text, scheduler_name))
