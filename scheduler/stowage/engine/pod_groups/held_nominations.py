"""Giving back the room that evictions made for a group whose members PreEnqueue holds now."""

from __future__ import annotations

from stowage.engine.released_nominations import release_nomination
from stowage.engine.state.engine_state import EngineState
from stowage.state.pods.pod_info import PodInfo


def clear_nominations_if_held(state: EngineState, key: str, now: float) -> None:
    """Clear the nominations of a group that is gone or has too few pods, and move other pods.

    kube-scheduler v1.36 keeps the room for such members for good.
    """
    groups = state.cache.pod_groups
    known, members = groups.group(key), groups.members(key)
    if known is not None and members.num_all >= (known.group.min_count or 0):
        return
    for uid in list(members.unscheduled):
        info, node_name = state.queue.latest(uid), state.queue.nominator.node_of(uid)
        if info is not None and node_name is not None and _is_held(state, info):
            _clear(state, info, node_name, now)


def _is_held(state: EngineState, info: PodInfo) -> bool:
    return state.frameworks[info.scheduler_name].gating.holds(info)


def _clear(state: EngineState, info: PodInfo, node_name: str, now: float) -> None:
    state.queue.nominator.remove(info.uid)
    state.outbox.emit(state.statuses.clear_nomination(info.reference))
    release_nomination(state, info, node_name, now)
