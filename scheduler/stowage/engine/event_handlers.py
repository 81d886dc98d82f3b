"""What the watches report: into the cache, into the queue, and to the pods it may help.

Each function says which events kube-scheduler would make of it, so that their duration can be
told (``eventhandlers.go`` of v1.36).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from stowage.api.decoding.errors import InvalidObject
from stowage.api.events import (
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
from stowage.api.instructions import EmitEvent, PodReference
from stowage.api.objects.meta import ObjectMeta
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.pod import Pod
from stowage.engine.binding.commitments import (
    ASSIGNED_POD_DELETE,
    pending_pod_gone,
    storage_changed,
    try_again_without,
)
from stowage.engine.extenders.consulting import drop_consultation
from stowage.engine.failure import SCHEDULER_ERROR
from stowage.engine.machine import Machine
from stowage.queue.queue_events import (
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_DELETE,
    UNSCHEDULED_POD_UPDATE,
)
from stowage.state.pods.pod_info import PodInfo, make_pod_info

#: What an event of a watch amounts to for pods that wait.
Happened: TypeAlias = Sequence[ClusterEvent]

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NAMESPACE_UPDATE = ClusterEvent(EventResource.NAMESPACE, ActionType.UPDATE_OTHER)
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)
ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)

#: One event per kind of change, in the order kube-scheduler reports them.
NODE_UPDATES = tuple(ClusterEvent(EventResource.NODE, action) for action in ActionType.UPDATE_NODE)
ASSIGNED_POD_UPDATES = tuple(
    ClusterEvent(EventResource.ASSIGNED_POD, action) for action in ActionType.UPDATE_POD
)


def pending_pod_seen(machine: Machine, event: PendingPodSeen, now: float) -> Happened:
    """Queue a new pod, or update it where it is: queued, in flight, or being bound."""
    if event.pod.spec.scheduler_name in machine.frameworks:
        machine.statuses.saw(event.pod)
    info = _pod_info(machine, event.pod)
    if info is None:
        drop_consultation(machine, event.pod.metadata.uid)
        machine.queue.delete(event.pod.metadata.uid)
        return ()
    if info.scheduler_name not in machine.frameworks:
        return ()
    cycle = machine.bindings.get(info.uid)
    if cycle is not None:
        cycle.info = info
        cycle.left_pending = False
    elif machine.cache.get_pod(info.uid) is not None:
        # The watch of pending pods lags behind the one of assigned pods.
        return ()
    elif machine.queue.get(info.uid) is None:
        machine.queue.add(info, now)
        return (UNSCHEDULED_POD_ADD,)
    else:
        _update_waiting(machine, info, now)
        consultation = machine.consultations.get(info.uid)
        if consultation is not None:
            consultation.info = info
    return (UNSCHEDULED_POD_UPDATE,)


def pending_pod_left(machine: Machine, event: PendingPodGone, now: float) -> Happened:
    """Take a pod out of the queue; its binding cycle, if any, has its own say."""
    if pending_pod_gone(machine, event.uid, now):
        return (UNSCHEDULED_POD_DELETE,)
    drop_consultation(machine, event.uid)
    old = machine.queue.delete(event.uid)
    machine.statuses.forget(event.uid)
    if old is not None and old.nominated_node_name:
        _release_nomination(machine, old, now)
    return (UNSCHEDULED_POD_DELETE,)


def assigned_pod_seen(machine: Machine, event: AssignedPodSeen, now: float) -> Happened:
    """Account for a pod on its node, and let pods that care about neighbours know."""
    info = _pod_info(machine, event.pod)
    if info is None:
        return ()
    if info.uid not in machine.bindings:
        drop_consultation(machine, info.uid)
        machine.queue.delete(info.uid)
        machine.statuses.forget(info.uid)
    change = machine.cache.update_pod(info)
    if change.ignored:
        return ()
    machine.unconfirmed.pop(info.uid, None)
    if info.terminating:
        machine.note_leaving(info.uid)
    if change.moved_from is not None:
        machine.problem(
            f"Pod {info.key}", f"assumed on node {change.moved_from}, but bound to {info.node_name}"
        )
    if change.actions & ActionType.ADD:
        machine.queue.move_on_event(ASSIGNED_POD_ADD, None, info, now)
        return (ASSIGNED_POD_ADD,)
    updates = [each for each in ASSIGNED_POD_UPDATES if each.action & change.actions]
    for update in updates:
        machine.queue.move_on_event(update, change.old, info, now)
    return updates


def assigned_pod_gone(machine: Machine, event: AssignedPodGone, now: float) -> Happened:
    """Free what the pod held and wake the pods that may now fit."""
    machine.unconfirmed.pop(event.uid, None)
    cycle = machine.bindings.get(event.uid)
    if cycle is not None:
        cycle.was_deleted = True
    info = machine.cache.remove_pod(event.uid)
    if info is not None:
        machine.note_leaving(event.uid)
        machine.queue.move_on_event(ASSIGNED_POD_DELETE, info, None, now)
        try_again_without(machine, event.uid, now)
    return (ASSIGNED_POD_DELETE,)


def node_seen(machine: Machine, event: NodeSeen, now: float) -> Happened:
    """Take in a node and wake pods by what changed about it."""
    try:
        change = machine.cache.update_node(event.node)
    except InvalidObject as invalid:
        machine.problem(f"Node {event.node.metadata.name}", str(invalid))
        return ()
    if change.actions:
        storage_changed(machine, EventResource.NODE, event.node.metadata.name, now)
    if change.actions & ActionType.ADD:
        machine.queue.move_on_event(NODE_ADD, None, event.node, now)
        return (NODE_ADD,)
    updates = [each for each in NODE_UPDATES if each.action & change.actions]
    for update in updates:
        machine.queue.move_on_event(update, change.old, event.node, now)
    return updates


def node_gone(machine: Machine, event: NodeGone, now: float) -> Happened:
    """Forget a node; its pods stay accounted for until they go."""
    node = machine.cache.remove_node(event.name)
    if node is not None:
        storage_changed(machine, EventResource.NODE, event.name, now)
        machine.queue.move_on_event(NODE_DELETE, node, None, now)
    return (NODE_DELETE,)


def namespace_seen(machine: Machine, event: NamespaceSeen, now: float) -> None:
    """Namespace labels decide which pods a namespaceSelector means.

    Unlike kube-scheduler, which tells no pod that waits of them.
    """
    before = _known_namespace(machine, event.namespace.metadata.name)
    if machine.cache.update_namespace(event.namespace):
        machine.queue.move_on_event(NAMESPACE_UPDATE, before, event.namespace, now)


def namespace_gone(machine: Machine, event: NamespaceGone, now: float) -> None:
    """A namespace without an object has no labels."""
    before = _known_namespace(machine, event.name)
    if machine.cache.remove_namespace(event.name):
        nothing = Namespace(ObjectMeta(name=event.name))
        machine.queue.move_on_event(NAMESPACE_UPDATE, before, nothing, now)


def _known_namespace(machine: Machine, name: str) -> Namespace:
    """What is known of a namespace, seen or not."""
    labels = machine.cache.snapshot().namespaces.labels(name)
    return Namespace(ObjectMeta(name=name, labels=dict(labels)))


def workload_seen(machine: Machine, event: WorkloadSeen, _now: float) -> None:
    """Services, controllers and sets give pods their default spreading."""
    machine.cache.update_workload(event.kind, event.namespace, event.name, event.selector)


def workload_gone(machine: Machine, event: WorkloadGone, _now: float) -> None:
    """A Service, controller or set is gone."""
    machine.cache.remove_workload(event.kind, event.namespace, event.name)


def disruption_budget_seen(machine: Machine, event: DisruptionBudgetSeen, _now: float) -> None:
    """A budget says which victims cost more than others."""
    machine.cache.update_budget(event.budget)


def disruption_budget_gone(machine: Machine, event: DisruptionBudgetGone, _now: float) -> None:
    """A budget is gone."""
    machine.cache.remove_budget(event.namespace, event.name)


def object_invalid(machine: Machine, event: ObjectInvalid, _now: float) -> None:
    """Report an object that could not be decoded; the owner of a waiting pod is told."""
    name = f"{event.namespace}/{event.name}" if event.namespace else event.name
    text = f'{event.field}: "{event.value}" (expected {event.expectation})'
    machine.problem(f"{event.kind} {name}", text)
    if event.kind == "Pod" and event.uid:
        drop_consultation(machine, event.uid)
        machine.queue.delete(event.uid)
        reference = PodReference(event.namespace, event.name, event.uid)
        _tell_owner(machine, reference, text, event.scheduler_name)


def _update_waiting(machine: Machine, info: PodInfo, now: float) -> None:
    old = machine.queue.latest(info.uid)
    machine.queue.update(info, now)
    if old is not None and old.nominated_node_name not in ("", info.nominated_node_name):
        _release_nomination(machine, old, now)


def _release_nomination(machine: Machine, old: PodInfo, now: float) -> None:
    """A pod is nominated no more: as if a placed pod had gone, for those that reckon with it.

    Pods of a higher priority never did. Hints are shown it on its node: v1.36 shows it on none,
    where those that ask for placed pods take no notice.
    """
    gone = old.on_node(old.nominated_node_name)
    machine.queue.move_on_event(
        ASSIGNED_POD_DELETE, gone, None, now, lambda pod: pod.priority <= old.priority
    )


def _pod_info(machine: Machine, pod: Pod) -> PodInfo | None:
    """The pod as scheduling sees it, or None where it has an impossible value (reported)."""
    try:
        return make_pod_info(pod, machine.cache.classes)
    except InvalidObject as invalid:
        meta = pod.metadata
        machine.problem(f"Pod {meta.namespace}/{meta.name}", str(invalid))
        if not pod.spec.node_name:
            reference = PodReference(meta.namespace, meta.name, meta.uid)
            name, generation = pod.spec.scheduler_name, meta.generation
            _tell_owner(machine, reference, str(invalid), name, generation)
        return None


def _tell_owner(
    machine: Machine, pod: PodReference, text: str, scheduler_name: str, generation: int = 0
) -> None:
    """Say once why a pod of ours is not tried; one of another scheduler is not our business."""
    if scheduler_name not in machine.frameworks:
        return
    change = machine.statuses.change(pod, generation, (SCHEDULER_ERROR, text), None)
    if change is not None:
        note = EmitEvent(pod, "Warning", "FailedScheduling", "Scheduling", text, scheduler_name)
        machine.outbox += (note, change)
