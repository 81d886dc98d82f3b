"""Another node for a pod whose node is drained, chosen by the engine's algorithm at once.

An ordinary pod needs nothing but a node, so the queue and the binding would not change the
decision. The engine's queue decides about all other pods, and says why a pod stays pending.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from stowage.analysis.virtual_cluster import VirtualCluster
from stowage.api.decoding.errors import InvalidObject
from stowage.api.objects.pod import Pod
from stowage.engine.scheduling import SchedulingRequest
from stowage.engine.scheduling.feasible_nodes import find_nodes_that_fit_pod
from stowage.engine.scheduling.node_scoring import prioritize_nodes, select_host
from stowage.engine.state.engine_state import EngineState
from stowage.framework import Framework
from stowage.framework.profile.profile import DEFAULT_MULTI_POINT, ExtensionPoint
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.state.pods.pod_info import PodInfo, make_pod_info
from stowage.state.snapshot import Snapshot

#: Their Reserve and Permit do nothing for a pod without volumes, claims and pod group.
_KNOWN = frozenset(name for name, _ in DEFAULT_MULTI_POINT)


class Relocations:
    """Moves pods of a cluster to other nodes, one after the other.

    Args:
        cluster: The cluster.
    """

    def __init__(self, cluster: VirtualCluster) -> None:
        self._cluster = cluster
        state = cluster.engine.state
        self._deciding = {
            name: framework
            for name, framework in state.frameworks.items()
            if not state.extenders and framework.rates_nodes and _asks_only_known_plugins(framework)
        }

    def relocate(self, pod: Pod, avoided: BoolArray) -> str:
        """Evict the pod, which its controller makes again; returns why it gets no other node.

        Args:
            pod: A pod with a controller, whose node is cordoned.
            avoided: ``bool[rows]``: nodes that get the pod only if no other node takes it.
        """
        cluster, key, was = self._cluster, pod.metadata.namespaced_name, pod.spec.node_name
        if pod.spec.preemption_policy != "Never":
            pod = replace(pod, spec=replace(pod.spec, preemption_policy="Never"))
        made = cluster.made_again(pod)
        info = self._ordinary(made)
        if info is not None:
            cluster.delete_pod(pod)
            node_name = _other_node(cluster.engine.state, info, was, avoided)
            if node_name:
                cluster.place_pod(replace(made, spec=replace(made.spec, node_name=node_name)))
                return ""
            cluster.create_pods([made])
        else:
            cluster.evict_pod(pod)
        cluster.run()
        current = cluster.objects.pod(key)
        if current is None or not current.spec.node_name:
            return f"{key} would stay pending: {cluster.messages.get(key, '')}"
        if current.spec.node_name == was:
            return f"{key} would come back to the node, although it is cordoned"
        return ""

    def _ordinary(self, pod: Pod) -> PodInfo | None:
        """The pod in the scheduler's terms if it needs nothing but a node of Filter and Score."""
        framework = self._deciding.get(pod.spec.scheduler_name)
        if framework is None:
            return None
        try:
            info = make_pod_info(pod, self._cluster.engine.state.cache.classes)
        except InvalidObject:
            return None  # the engine reports it
        if info.volumes or info.spec.resource_claims or info.group:
            return None
        return info if framework.run_pre_enqueue(info).is_success else None


def _asks_only_known_plugins(framework: Framework) -> bool:
    """Whether no plugin of others takes part after Score."""
    plugins = framework.profile.plugins
    asked = (*plugins[ExtensionPoint.RESERVE], *plugins[ExtensionPoint.PERMIT])
    return _KNOWN.issuperset(each.name for each in asked)


def _other_node(state: EngineState, pod: PodInfo, was: str, avoided: BoolArray) -> str:
    """The best node for the pod, which is on no node; empty if there is none."""
    framework, snapshot = state.frameworks[pod.scheduler_name], state.cache.snapshot()
    request = SchedulingRequest(
        framework,
        snapshot,
        pod,
        state.new_cycle_state(pod.uid),
        state.ties,
        nominated=state.queue.nominator,
    )
    pre_filtered = framework.run_pre_filter(request.cycle_state, pod, snapshot)
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


def hopeless_first(cluster: VirtualCluster, name: str, pods: list[Pod]) -> list[Pod]:
    """The pods, those first that request more than any other node has left.

    So that a node is given up before other pods of it are moved in vain.
    """
    cache = cluster.engine.state.cache
    snapshot = cache.snapshot()
    others = snapshot.exists.copy()
    others[snapshot.row_of(name)] = False
    known: dict[int, bool] = {}
    hopeless: list[Pod] = []
    hopeful: list[Pod] = []
    for pod in pods:
        info = cache.get_pod(pod.metadata.uid)
        has_room = True
        if info is not None:
            demand = info.pod_class.demand.id
            if demand not in known:
                wanted = snapshot.request_vector(info.pod_class)
                known[demand] = _has_room(snapshot, others, wanted)
            has_room = known[demand]
        (hopeful if has_room else hopeless).append(pod)
    return [*hopeless, *hopeful]


def _has_room(snapshot: Snapshot, rows: BoolArray, wanted: Int64Array) -> bool:
    """Whether one of these rows, ``bool[rows]``, has these amounts left, ``int64[resources]``."""
    room = rows.copy()
    for column in np.flatnonzero(wanted).tolist():
        room &= snapshot.allocatable[:, column] - snapshot.requested[:, column] >= wanted[column]
    return bool(room.any())
