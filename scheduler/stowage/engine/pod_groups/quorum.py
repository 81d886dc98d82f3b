"""Releasing the members that PreEnqueue holds until their group is complete."""

from __future__ import annotations

from stowage.api.cluster_events import ClusterEvent
from stowage.api.interruptible import Interruptible
from stowage.engine.pod_groups.held_nominations import clear_nominations_if_held
from stowage.engine.state.engine_state import EngineState
from stowage.queue.queued_pod import QueueState
from stowage.state.pods.pod_info import PodInfo


def release_complete_gang(
    state: EngineState, added: PodInfo, event: ClusterEvent, now: float
) -> Interruptible[None]:
    """A pod was added: if it completes its gang, release the others.

    While a gang has fewer pods PreEnqueue holds all of them. Once it has enough, a later pod is
    active at once and takes the others with it.
    """
    known = state.cache.pod_groups.group(added.group_key)
    members = state.cache.pod_groups.members(added.group_key)
    if known is not None and members.num_all == known.group.min_count:
        yield from release_members(state, added.group_key, event, now)


def placed_pod_seen(
    state: EngineState, old: PodInfo | None, new: PodInfo, event: ClusterEvent, now: float
) -> Interruptible[None]:
    """A pod on a node was added, or its label names another group: try its companions again.

    They may be held, or lack companions, until as many are placed as the gang needs.
    """
    if old is not None:
        if old.group_key == new.group_key:
            return
        clear_nominations_if_held(state, old.group_key, now)
    known = state.cache.pod_groups.group(new.group_key)
    if known is None:
        return
    members, min_count = state.cache.pod_groups.members(new.group_key), known.group.min_count or 0
    if members.num_scheduled <= min_count <= members.num_all:
        yield from release_members(state, new.group_key, event, now)


def waiting_pod_changes_group(
    state: EngineState, old: PodInfo, new: PodInfo, event: ClusterEvent, now: float
) -> Interruptible[None]:
    """The label of a waiting pod names another group, or none: try what it held or holds.

    The pod itself is tried again, since its new group may need no further member.
    """
    for key in (old.group_key, new.group_key):
        clear_nominations_if_held(state, key, now)
    yield from state.queue.try_again_steps((new.uid,), event, now)
    yield from release_complete_gang(state, new, event, now)


def release_members(
    state: EngineState, key: str, event: ClusterEvent, now: float
) -> Interruptible[None]:
    """Try the unscheduled pods of a group again, if PreEnqueue admits them now.

    A pod that was shown with a nomination while PreEnqueue held it, as after a restart, has it
    from now on.
    """
    uids = list(state.cache.pod_groups.members(key).unscheduled)
    yield from state.queue.try_again_steps(uids, event, now)
    for uid in uids:
        node_name = state.statuses.nomination(uid)
        if node_name and state.queue.nominator.node_of(uid) is None:
            _nominate_if_admitted(state, uid, node_name)


def _nominate_if_admitted(state: EngineState, uid: str, node_name: str) -> None:
    info = state.queue.latest(uid)
    if info is not None and state.queue.state_of(uid) in (QueueState.ACTIVE, QueueState.BACKOFF):
        state.queue.nominator.nominate(info, node_name)
