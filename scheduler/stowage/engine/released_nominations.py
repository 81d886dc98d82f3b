"""Retrying pods that were rejected because a nominated pod counted on a node."""

from __future__ import annotations

from stowage.engine.state.engine_state import EngineState
from stowage.queue.queue_events import ASSIGNED_POD_DELETE
from stowage.state.pods.pod_info import PodInfo


def release_nomination(state: EngineState, info: PodInfo, node_name: str, now: float) -> None:
    """Move pods as if an assigned pod had been deleted: `info` is not nominated to a node any more.

    Filter counts nominated pods of equal or higher priority only, so pods of a higher priority are
    not moved. The event shows the pod on its nominated node. kube-scheduler shows it on no node,
    and the hints that look at assigned pods ignore it.
    """
    _retry_others(state, info, node_name, now)


def release_unseen_nomination(
    state: EngineState, info: PodInfo, node_name: str, now: float
) -> None:
    """`release_nomination` of a waiting pod whose nomination ended here; it and its group stay.

    If the watch has shown the nomination, it will show its end too, and that releases it. Two
    patches of a nomination that it has not shown may arrive as one change, or as none.
    """
    if info.nominated_node_name == node_name:
        return
    _retry_others(state, info, node_name, now, stays=True)


def _retry_others(
    state: EngineState, info: PodInfo, node_name: str, now: float, *, stays: bool = False
) -> None:
    gone, priority = info.on_node(node_name), info.priority
    state.queue.move_on_event(
        ASSIGNED_POD_DELETE,
        gone,
        None,
        now,
        lambda pod: pod.priority <= priority and not (stays and _are_companions(pod, info)),
    )


def _are_companions(pod: PodInfo, other: PodInfo) -> bool:
    """Whether two pods are of one pod group, or the same pod."""
    return pod.uid == other.uid or (bool(pod.group) and pod.group_key == other.group_key)
