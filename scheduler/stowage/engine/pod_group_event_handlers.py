"""Handlers of pod groups: note the objects and the pending members, move waiting pods."""

from __future__ import annotations

from collections.abc import Sequence

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.api.events import PodGroupGone, PodGroupSeen, PodGroupsServed
from stowage.api.interruptible import Interruptible
from stowage.api.objects.pod_groups import CORE_GROUPS
from stowage.engine.pod_groups.held_nominations import clear_nominations_if_held
from stowage.engine.pod_groups.quorum import release_members
from stowage.engine.state.engine_state import EngineState
from stowage.state.pods.pod_groups import KnownGroup

GROUP_ADD = ClusterEvent(EventResource.POD_GROUP, ActionType.ADD)
GROUP_UPDATE = ClusterEvent(EventResource.POD_GROUP, ActionType.UPDATE_OTHER)
GROUP_DELETE = ClusterEvent(EventResource.POD_GROUP, ActionType.DELETE)


def pod_group_seen(
    state: EngineState, event: PodGroupSeen, now: float
) -> Interruptible[Sequence[ClusterEvent]]:
    """A pod group was added or updated; its members may be waiting for it.

    kube-scheduler moves no pods on an update. The spec of a group of the coscheduling plugin may
    change at any time, so an update of the spec moves its members here.
    """
    known = KnownGroup(event.group, event.source, event.permit_timeout_s)
    old, is_news = state.cache.update_pod_group(known)
    if not is_news:
        return ()
    if event.source == CORE_GROUPS:
        state.group_statuses.see(event.group)
    if old is not None and old.group.spec == event.group.spec:
        return ()
    moved = GROUP_ADD if old is None else GROUP_UPDATE
    yield from state.queue.move_steps(moved, None if old is None else old.group, event.group, now)
    yield from release_members(state, event.group.key, moved, now)
    clear_nominations_if_held(state, event.group.key, now)
    return (moved,)


def pod_group_gone(
    state: EngineState, event: PodGroupGone, now: float
) -> Interruptible[Sequence[ClusterEvent]]:
    """A pod group was deleted; its pods stay members of the name."""
    old = state.cache.remove_pod_group(f"{event.namespace}/{event.name}", event.source)
    if old is None:
        return ()
    state.group_statuses.forget(old.group.metadata.uid)
    yield from state.queue.move_steps(GROUP_DELETE, old.group, None, now)
    clear_nominations_if_held(state, old.group.key, now)
    return (GROUP_DELETE,)


def pod_groups_served(
    state: EngineState, event: PodGroupsServed, now: float
) -> Sequence[ClusterEvent]:
    """Discovery found out whether the API server serves a source: examine the pods that name it.

    If the feature gate asks for the groups of Kubernetes, their members wait as in kube-scheduler,
    even while the API server does not serve them. Pods that wait at Permit go on to do so.
    """
    if event.source == CORE_GROUPS and state.gates.set_to("GenericWorkload"):
        return ()
    groups = state.cache.pod_groups
    if not groups.set_served(event.source, event.is_served):
        return ()
    moved = GROUP_ADD if event.is_served else GROUP_DELETE
    waiting = ((uid, state.queue.latest(uid)) for uid in list(groups.pending()))
    named = {uid: info for uid, info in waiting if info and info.group_source == event.source}
    state.queue.examine_again(named, moved, now)
    for key in dict.fromkeys(info.group_key for info in named.values()):
        clear_nominations_if_held(state, key, now)
    return (moved,)
