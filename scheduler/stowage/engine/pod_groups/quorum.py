"""Releasing the members that PreEnqueue holds until their group is complete."""

from __future__ import annotations

from stowage.api.cluster_events import ClusterEvent
from stowage.api.interruptible import Interruptible
from stowage.engine.state.engine_state import EngineState
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


def release_members(
    state: EngineState, key: str, event: ClusterEvent, now: float
) -> Interruptible[None]:
    """Try the unscheduled pods of a group again, if PreEnqueue admits them now."""
    members = state.cache.pod_groups.members(key)
    yield from state.queue.try_again_steps(list(members.unscheduled), event, now)
