"""Handlers of watch events: update the cache and the queue, and move waiting pods.

``eventhandlers.go`` of v1.36. Handlers of pods and nodes return the cluster events that
kube-scheduler makes of the watch event, so that the engine can record how long they took. Those
that may move many pods do so in steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.api.decoding.errors import InvalidObject
from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    DisruptionBudgetGone,
    DisruptionBudgetSeen,
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
from stowage.api.instructions import PodReference
from stowage.api.interruptible import Interruptible, finish
from stowage.api.objects.meta import ObjectMeta
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.pod import Pod
from stowage.engine.binding.event_handlers import object_changed
from stowage.engine.binding.failure import retry_after_victim
from stowage.engine.binding.state_machine import BindingEvent, advance_binding
from stowage.engine.extenders.consulting import drop_consultation
from stowage.engine.pod_groups.held_nominations import clear_nominations_if_held
from stowage.engine.pod_groups.quorum import (
    placed_pod_seen,
    release_complete_gang,
    waiting_pod_changes_group,
)
from stowage.engine.released_nominations import release_nomination
from stowage.engine.scheduling_failure import report_invalid_pod
from stowage.engine.state.bindings import LastSeen
from stowage.engine.state.engine_state import EngineState
from stowage.queue.queue_events import (
    ASSIGNED_POD_DELETE,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_DELETE,
    UNSCHEDULED_POD_UPDATE,
    pod_update_events,
)
from stowage.state.changes import PodChange
from stowage.state.pods.pod_info import PodInfo, make_pod_info

#: The cluster events that a watch event causes, under whose labels its handling is timed.
ClusterEvents: TypeAlias = Sequence[ClusterEvent]

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NAMESPACE_UPDATE = ClusterEvent(EventResource.NAMESPACE, ActionType.UPDATE_OTHER)
BUDGET_UPDATE = ClusterEvent(EventResource.POD_DISRUPTION_BUDGET, ActionType.UPDATE)
BUDGET_DELETE = ClusterEvent(EventResource.POD_DISRUPTION_BUDGET, ActionType.DELETE)
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)
ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_UPDATE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE)

#: One event per kind of change, in the order kube-scheduler reports them.
NODE_UPDATES = tuple(ClusterEvent(EventResource.NODE, action) for action in ActionType.UPDATE_NODE)
ASSIGNED_POD_UPDATES = tuple(
    ClusterEvent(EventResource.ASSIGNED_POD, action) for action in ActionType.UPDATE_POD
)


def pending_pod_seen(
    state: EngineState, event: PendingPodSeen, now: float
) -> Interruptible[ClusterEvents]:
    """A pending pod was added or updated; it may be new, queued, in flight or being bound."""
    if event.pod.spec.scheduler_name in state.frameworks:
        state.statuses.see(event.pod)
    info = _pod_info(state, event.pod)
    if info is None:
        drop_consultation(state, event.pod.metadata.uid)
        state.queue.delete(event.pod.metadata.uid)
        state.cache.forget_pending_member(event.pod.metadata.uid)
        return ()
    if info.scheduler_name not in state.frameworks:
        return ()
    cycle = state.bindings.get(info.uid)
    old = state.queue.latest(info.uid) if cycle is None else cycle.info
    if cycle is not None:
        cycle.info = info
        cycle.see(LastSeen.PENDING)
        if info.terminating:
            advance_binding(state, info.uid, BindingEvent.TERMINATING, now)
        else:
            _update_assumed(state, info, now)
    elif state.cache.get_pod(info.uid) is not None or info.uid in state.left_nodes:
        # The watch of pending pods lags behind the one of assigned pods, or behind the binding.
        _update_assumed(state, info, now)
        return ()
    elif state.queue.get(info.uid) is None:
        state.cache.see_pending_member(info)
        state.queue.add(info, now)
        if info.group:
            yield from release_complete_gang(state, info, UNSCHEDULED_POD_ADD, now)
        return (UNSCHEDULED_POD_ADD,)
    else:
        yield from _update_waiting(state, info, now)
        consultation = state.consultations.get(info.uid)
        if consultation is not None:
            consultation.info = info
    return _pending_pod_updates(old, info)


def _pending_pod_updates(old: PodInfo | None, new: PodInfo) -> ClusterEvents:
    """The update, and its kinds: ``updatePodInSchedulingQueue`` of v1.36 times each of them."""
    kinds = () if old is None else pod_update_events(old, new)
    plain = ActionType.UPDATE_POD_OTHER
    return (UNSCHEDULED_POD_UPDATE, *(each for each in kinds if each.action != plain))


def pending_pod_gone(state: EngineState, event: PendingPodGone, now: float) -> ClusterEvents:
    """A pod is not pending any more; if it is being bound, its binding cycle decides."""
    if advance_binding(state, event.uid, BindingEvent.NOT_PENDING, now):
        return (UNSCHEDULED_POD_DELETE,)
    drop_consultation(state, event.uid)
    nominator = state.queue.nominator
    # A nominated pod that was skipped because it terminates is not in the queue any more.
    nominated, node_name = nominator.pod(event.uid), nominator.node_of(event.uid)
    old = state.queue.delete(event.uid) or nominated
    state.cache.forget_pending_member(event.uid)
    state.statuses.forget(event.uid)
    if old is not None and (node_name or old.nominated_node_name):
        release_nomination(state, old, node_name or old.nominated_node_name, now)
    if old is not None and old.group:
        clear_nominations_if_held(state, old.group_key, now)
    return (UNSCHEDULED_POD_DELETE,)


def assigned_pod_seen(
    state: EngineState, event: AssignedPodSeen, now: float
) -> Interruptible[ClusterEvents]:
    """An assigned pod was added or updated: count it on its node, and move pods it may help."""
    info = _pod_info(state, event.pod)
    if info is None:
        return ()
    nominated = None
    if info.uid not in state.bindings:
        drop_consultation(state, info.uid)
        nominated = state.queue.nominator.node_of(info.uid)
        state.queue.delete(info.uid)
        state.statuses.forget(info.uid)
    change = state.cache.update_pod(info)
    if nominated not in (None, info.node_name):
        # Another client has bound it elsewhere.
        release_nomination(state, info, nominated, now)
    if change.ignored:
        return ()
    state.bindings.unconfirmed.confirm(info.uid)
    if info.terminating:
        state.preemptions.victim_leaves(info.uid)
    if change.moved_from is not None:
        state.outbox.report(
            f"Pod {info.key}", f"assumed on node {change.moved_from}, but bound to {info.node_name}"
        )
    if change.actions & ActionType.ADD:
        yield from placed_pod_seen(state, change.old, info, ASSIGNED_POD_ADD, now)
        yield from state.queue.move_steps(ASSIGNED_POD_ADD, None, info, now)
        return (ASSIGNED_POD_ADD,)
    moved = yield from _move_on_updates(state, change, now)
    return (ASSIGNED_POD_UPDATE, *moved)


def assigned_pod_gone(
    state: EngineState, event: AssignedPodGone, now: float
) -> Interruptible[ClusterEvents]:
    """An assigned pod was deleted: free its resources, and move the pods that may fit now."""
    state.bindings.unconfirmed.confirm(event.uid)
    state.left_nodes[event.uid] = None
    cycle = state.bindings.get(event.uid)
    if cycle is not None:
        cycle.see(LastSeen.DELETED)
    info = state.cache.remove_pod(event.uid)
    if info is not None:
        state.preemptions.victim_leaves(event.uid)
        yield from state.queue.move_steps(ASSIGNED_POD_DELETE, info, None, now)
        retry_after_victim(state, event.uid, now)
        if info.group:
            clear_nominations_if_held(state, info.group_key, now)
    return (ASSIGNED_POD_DELETE,)


def node_seen(state: EngineState, event: NodeSeen, now: float) -> Interruptible[ClusterEvents]:
    """A node was added or updated: move pods by the kinds of change."""
    try:
        change = state.cache.update_node(event.node)
    except InvalidObject as invalid:
        state.outbox.report(f"Node {event.node.metadata.name}", str(invalid))
        return ()
    if change.actions:
        object_changed(state, EventResource.NODE, event.node.metadata.name, now)
    if change.actions & ActionType.ADD:
        yield from state.queue.move_steps(NODE_ADD, None, event.node, now)
        return (NODE_ADD,)
    updates = [each for each in NODE_UPDATES if each.action.overlaps(change.actions)]
    for update in updates:
        yield from state.queue.move_steps(update, change.old, event.node, now)
    return updates


def node_gone(state: EngineState, event: NodeGone, now: float) -> Interruptible[ClusterEvents]:
    """A node was deleted; its pods stay in the cache until they are deleted."""
    node = state.cache.remove_node(event.name)
    if node is not None:
        object_changed(state, EventResource.NODE, event.name, now)
        yield from state.queue.move_steps(NODE_DELETE, node, None, now)
    return (NODE_DELETE,)


def namespace_seen(state: EngineState, event: NamespaceSeen, now: float) -> Interruptible[None]:
    """A namespace was added or updated; namespaceSelectors match its labels.

    kube-scheduler moves no pods on this event.
    """
    before = _known_namespace(state, event.namespace.metadata.name)
    if state.cache.update_namespace(event.namespace):
        yield from state.queue.move_steps(NAMESPACE_UPDATE, before, event.namespace, now)


def namespace_gone(state: EngineState, event: NamespaceGone, now: float) -> Interruptible[None]:
    """A namespace was deleted: it has no labels any more."""
    before = _known_namespace(state, event.name)
    if state.cache.remove_namespace(event.name):
        nothing = Namespace(ObjectMeta(name=event.name))
        yield from state.queue.move_steps(NAMESPACE_UPDATE, before, nothing, now)


def _known_namespace(state: EngineState, name: str) -> Namespace:
    """The namespace with its known labels; without labels if it was not seen."""
    labels = state.cache.snapshot().namespaces.labels(name)
    return Namespace(ObjectMeta(name=name, labels=dict(labels)))


def workload_seen(state: EngineState, event: WorkloadSeen, _now: float) -> None:
    """A Service, controller or set was added or updated; pods spread by its selector by default."""
    state.cache.update_workload(event.kind, event.namespace, event.name, event.selector)


def workload_gone(state: EngineState, event: WorkloadGone, _now: float) -> None:
    """A Service, controller or set was deleted."""
    state.cache.remove_workload(event.kind, event.namespace, event.name)


def disruption_budget_seen(
    state: EngineState, event: DisruptionBudgetSeen, now: float
) -> Interruptible[None]:
    """A pod disruption budget was added or updated.

    kube-scheduler moves no pods on this event, nor when a budget is deleted.
    """
    state.cache.update_budget(event.budget)
    yield from state.queue.move_steps(BUDGET_UPDATE, None, event.budget, now)


def disruption_budget_gone(
    state: EngineState, event: DisruptionBudgetGone, now: float
) -> Interruptible[None]:
    """A pod disruption budget was deleted."""
    if state.cache.remove_budget(event.namespace, event.name):
        yield from state.queue.move_steps(BUDGET_DELETE, None, None, now)


def object_invalid(state: EngineState, event: ObjectInvalid, _now: float) -> None:
    """An object could not be decoded: report it, and tell the owner if it is a pending pod."""
    name = f"{event.namespace}/{event.name}" if event.namespace else event.name
    text = f'{event.field}: "{event.value}" (expected {event.expectation})'
    state.outbox.report(f"{event.kind} {name}", text)
    if event.kind == "Pod" and event.uid:
        drop_consultation(state, event.uid)
        state.queue.delete(event.uid)
        state.cache.forget_pending_member(event.uid)
        reference = PodReference(event.namespace, event.name, event.uid)
        report_invalid_pod(state, reference, text, event.scheduler_name)


def _update_assumed(state: EngineState, info: PodInfo, now: float) -> None:
    """Count a pod on its node as it is now, for instance resized; others may fit, or no longer.

    kube-scheduler counts an assumed pod as it was when it was tried, until it is bound.
    """
    known = state.cache.get_pod(info.uid)
    if known is not None and known.pod_class is not info.pod_class:
        finish(_move_on_updates(state, state.cache.update_pod(info), now))


def _move_on_updates(
    state: EngineState, change: PodChange, now: float
) -> Interruptible[ClusterEvents]:
    """Move the pods that the update of a pod on a node may help."""
    if change.new is not None:
        yield from placed_pod_seen(state, change.old, change.new, ASSIGNED_POD_UPDATE, now)
    updates = [each for each in ASSIGNED_POD_UPDATES if each.action.overlaps(change.actions)]
    for update in updates:
        yield from state.queue.move_steps(update, change.old, change.new, now)
    return updates


def _update_waiting(state: EngineState, info: PodInfo, now: float) -> Interruptible[None]:
    old = state.queue.latest(info.uid)
    state.cache.see_pending_member(info)
    state.queue.update(info, now)
    if old is not None and old.nominated_node_name not in ("", info.nominated_node_name):
        release_nomination(state, old, old.nominated_node_name, now)
    if info.group and info.nominated_node_name:
        # The nomination was on its way when PreEnqueue began to hold the group.
        clear_nominations_if_held(state, info.group_key, now)
    if old is not None and old.group_key != info.group_key:
        yield from waiting_pod_changes_group(state, old, info, UNSCHEDULED_POD_UPDATE, now)


def _pod_info(state: EngineState, pod: Pod) -> PodInfo | None:
    """The pod in the scheduler's terms; None if it has an invalid value, which is reported."""
    try:
        return make_pod_info(pod, state.cache.classes)
    except InvalidObject as invalid:
        meta = pod.metadata
        state.outbox.report(f"Pod {meta.namespace}/{meta.name}", str(invalid))
        if not pod.spec.node_name:
            reference = PodReference(meta.namespace, meta.name, meta.uid)
            name, generation = pod.spec.scheduler_name, meta.generation
            report_invalid_pod(state, reference, str(invalid), name, generation)
        return None
