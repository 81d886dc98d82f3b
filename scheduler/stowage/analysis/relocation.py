"""Another node for a pod whose node is drained.

A pod that needs nothing but a node is moved at once: the engine's algorithm chooses the node, and
the cache counts the pod there. No event is shown for it, which is right as long as no other pod
waits in the queue. The engine's queue decides about all other pods.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from stowage.analysis.explained_decision import (
    Circumstances,
    explain_decision,
    without_post_filter,
)
from stowage.analysis.movable_pods import KNOWN_PLUGINS, MovablePods, preempting_none
from stowage.analysis.virtual_cluster import VirtualCluster, pod_made_again
from stowage.api.objects.pod import Pod
from stowage.engine.scheduling import SchedulingRequest, Unschedulable, schedule_pod
from stowage.engine.scheduling.feasible_nodes import find_nodes_that_fit_pod
from stowage.engine.scheduling.node_scoring import prioritize_nodes, select_host
from stowage.framework import CycleState, Framework, fit_error_message
from stowage.framework.plugin_traits import Reads
from stowage.framework.profile.points import ExtensionPoint
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

_OWN = (Reads.NODE, Reads.USAGE)
#: Accepts every node for a pod that is on none.
_NODE_NAME = "NodeName"


class Relocations:
    """Moves pods of a cluster to other nodes, one after the other.

    Args:
        cluster: The cluster.
    """

    def __init__(self, cluster: VirtualCluster) -> None:
        state = cluster.engine.state
        self._cluster = cluster
        self._state = state
        self._movable = MovablePods(state)
        self._is_quiet = not len(state.queue) and not len(state.bindings)
        self._refused: set[int] = set()

    def relocate(self, pod: Pod, avoided: BoolArray) -> str:
        """Evict the pod, which its controller makes again; returns why it gets no other node.

        Args:
            pod: A pod with a controller, whose node is cordoned.
            avoided: ``bool[rows]``: nodes that get the pod only if no other node takes it.
        """
        known = self._state.cache.get_pod(pod.metadata.uid)
        info = None if known is None else self._movable.info_of(pod, known)
        if known is None or info is None:
            return self._move_by_queue(pod)
        self._take_out(pod)
        node_name = _other_node(self._request(info), pod.spec.node_name, avoided)
        if node_name:
            self._place(preempting_none(pod_made_again(pod), node_name), info)
            return ""
        self._refused.add(known.pod_class.demand.id)
        outcome = schedule_pod(self._request(info)) if self._is_quiet else None
        self._place(pod, known)
        if isinstance(outcome, Unschedulable):
            refusal = fit_error_message(replace(outcome.diagnosis, post_filter_message=""))
            return f"{info.key} would stay pending: {refusal}"
        return self._move_by_queue(pod)  # it comes back to the node, or a plugin failed

    def hopeless_first(self, name: str, pods: list[Pod]) -> list[Pod]:
        """The pods of a cordoned node, one first that no other node can take.

        So that a node is given up before other pods of it are moved in vain. The pods are examined
        once a move has failed.
        """
        if not self._refused:
            return pods
        for pod, known in self._one_of_each_class(pods):
            info = self._movable.info_of(pod, known)
            if info is not None and self._is_hopeless(info, name):
                return [pod, *(each for each in pods if each is not pod)]
        return pods

    def _one_of_each_class(self, pods: list[Pod]) -> list[tuple[Pod, PodInfo]]:
        """A pod of each class, as the scheduler stores it; those like refused pods come first."""
        of_class: dict[int, tuple[Pod, PodInfo]] = {}
        for pod in pods:
            known = self._state.cache.get_pod(pod.metadata.uid)
            if known is not None:
                of_class.setdefault(known.pod_class.id, (pod, known))
        refused = self._refused
        return sorted(
            of_class.values(), key=lambda each: each[1].pod_class.demand.id not in refused
        )

    def _is_hopeless(self, info: PodInfo, was: str) -> bool:
        """Whether no other node takes the pod, wherever other pods of its node move first."""
        request = self._request(info)
        snapshot, framework = request.snapshot, request.framework
        pre_filtered = framework.run_pre_filter(request.cycle_state, info, snapshot)
        if not pre_filtered.status.is_success:
            return False
        if not _refuses_for_good(framework, request.cycle_state):
            return not _has_room(snapshot, was, snapshot.request_vector(info.pod_class))
        rows = find_nodes_that_fit_pod(request, pre_filtered).rows
        return not len(rows[rows != snapshot.row_of(was)])

    def _request(self, info: PodInfo) -> SchedulingRequest:
        state = self._state
        return SchedulingRequest(
            state.frameworks[info.scheduler_name],
            state.cache.snapshot(),
            info,
            state.new_cycle_state(info.uid),
            state.ties,
            nominated=state.queue.nominator,
        )

    def _take_out(self, pod: Pod) -> None:
        """Count the pod on no node."""
        if self._is_quiet:
            self._state.cache.remove_pod(pod.metadata.uid)
        else:
            self._cluster.delete_pod(pod)

    def _place(self, pod: Pod, info: PodInfo) -> None:
        """Count the pod on its node; `info` is what the scheduler stores of it, on any node."""
        if self._is_quiet:
            self._state.cache.update_pod(info.on_node(pod.spec.node_name))
            self._cluster.objects.add(pod)
        else:
            self._cluster.place_pod(pod)

    def _move_by_queue(self, pod: Pod) -> str:
        """Evict the pod and let the engine work; why it gets no other node."""
        cluster, key, was = self._cluster, pod.metadata.namespaced_name, pod.spec.node_name
        cluster.evict_pod(preempting_none(pod))
        cluster.run()
        current = cluster.objects.pod(key)
        if current is None or not current.spec.node_name:
            return f"{key} would stay pending: {self._refusal(key, current)}"
        if current.spec.node_name == was:
            return f"{key} would come back to the node, although it is cordoned"
        return ""

    def _refusal(self, key: str, current: Pod | None) -> str:
        """Why a pod is pending, without what PostFilter says: the pod was let preempt none."""
        message, state = self._cluster.messages.get(key, ""), self._state
        waiting = None if current is None else state.queue.latest(current.metadata.uid)
        if waiting is None:
            return message
        framework = state.frameworks[waiting.scheduler_name]
        circumstances = Circumstances.of(state, framework)
        explained = explain_decision(framework, state.cache.snapshot(), waiting, circumstances)
        return without_post_filter(message, explained)


def _other_node(request: SchedulingRequest, was: str, avoided: BoolArray) -> str:
    """The best node for the pod, which is on no node; empty if there is none."""
    framework, snapshot = request.framework, request.snapshot
    pre_filtered = framework.run_pre_filter(request.cycle_state, request.pod, snapshot)
    if not pre_filtered.status.is_success:
        return ""
    found = find_nodes_that_fit_pod(request, pre_filtered)
    rows = found.rows[found.rows != snapshot.row_of(was)]
    wanted = rows[~avoided[rows]]
    rows = wanted if len(wanted) else rows
    if len(rows) < 2:
        return snapshot.node_names[int(rows[0])] if len(rows) else ""
    scores = prioritize_nodes(request, replace(found, rows=rows))
    chosen, _ = select_host(request, scores)
    return snapshot.node_names[int(rows[chosen])]


def _refuses_for_good(framework: Framework, state: CycleState) -> bool:
    """Whether a node that Filter rejects stays rejected when it gets more pods.

    True if each plugin that takes part is known, and reads nothing of other nodes. `state` is that
    of the cycle after PreFilter.
    """
    return all(
        each.name in state.skip_filter
        or each.name == _NODE_NAME
        or (each.name in KNOWN_PLUGINS and each.traits.filter_reads in _OWN)
        for each in framework.profile.plugins[ExtensionPoint.FILTER]
    )


def _has_room(snapshot: Snapshot, was: str, wanted: Int64Array) -> bool:
    """Whether a node other than `was` has these amounts left, ``int64[resources]``."""
    room = snapshot.exists.copy()
    room[snapshot.row_of(was)] = False
    for column in np.flatnonzero(wanted).tolist():
        room &= snapshot.allocatable[:, column] - snapshot.requested[:, column] >= wanted[column]
    return bool(room.any())
