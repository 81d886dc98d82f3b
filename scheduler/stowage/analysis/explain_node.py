"""Explains a node: its pods, its free amounts, and the pending pods that it rejects."""

from __future__ import annotations

from itertools import chain, islice

from stowage.analysis.amounts import amount_text
from stowage.analysis.devices.node_devices import devices_of_node
from stowage.analysis.devices.pod_shortages import pod_shortages
from stowage.analysis.explain_pod import NotInCluster
from stowage.analysis.explanation import NodeExplanation, PluginStatus, RejectedPod
from stowage.analysis.loaded_cluster import LoadedCluster
from stowage.analysis.near_misses import taint_text
from stowage.analysis.node_verdict_table import plugin_status, verdict_records
from stowage.engine.state.engine_state import EngineState
from stowage.framework import PluginFailed
from stowage.state.nodes.resource_index import PODS
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot


def explain_node(
    cluster: LoadedCluster, name: str, max_pending: int | None = None
) -> NodeExplanation:
    """Explain a node.

    Args:
        cluster: The cluster.
        name: The node.
        max_pending: The number of pending pods that are judged; None for all.

    Raises:
        NotInCluster: There is no such node.
    """
    state = cluster.engine.state
    snapshot = state.cache.snapshot()
    row = snapshot.row_of(name)
    if row is None:
        raise NotInCluster(f"there is no node {name}")
    rejects: list[RejectedPod] = []
    fits: list[str] = []
    queued = chain.from_iterable(state.queue.contents().values())
    waiting = (each.info for each in queued if not each.info.terminating)
    for info in islice(waiting, max_pending):
        rejected = _rejected(state, info, name)
        if rejected.rejected_by:
            rejects.append(rejected)
        else:
            fits.append(info.key)
    allocatable, free = _amounts(snapshot, row)
    taints = snapshot.taint_sets[int(snapshot.taint_set[row])] or ()
    on_node = sorted(snapshot.pods_on(name), key=lambda pod: (-pod.priority, pod.key))
    return NodeExplanation(
        name,
        bool(snapshot.unschedulable[row]),
        tuple(map(taint_text, taints)),
        allocatable,
        free,
        tuple(pod.key for pod in on_node),
        tuple(sorted(rejects, key=lambda each: each.pod)),
        tuple(sorted(fits)),
        devices_of_node(snapshot, row),
    )


def _rejected(engine_state: EngineState, pod: PodInfo, node_name: str) -> RejectedPod:
    """The pod, with the statuses of all plugins that reject it on the node."""
    framework = engine_state.frameworks[pod.scheduler_name]
    gate = framework.run_pre_enqueue(pod)
    if not gate.is_success:
        return RejectedPod(pod.key, (plugin_status(gate),))
    state, snapshot = engine_state.new_cycle_state(pod.uid), engine_state.cache.snapshot()
    outcome = framework.run_pre_filter(state, pod, snapshot)
    if not outcome.status.is_success:
        return RejectedPod(pod.key, (plugin_status(outcome.status),))
    if outcome.node_names is not None and node_name not in outcome.node_names:
        left_out = (PluginStatus(plugin, "Unschedulable") for plugin in sorted(outcome.plugins))
        return RejectedPod(pod.key, tuple(left_out))
    nominated = engine_state.queue.nominator
    try:
        filtered = framework.run_filter(state, pod, snapshot, frozenset((node_name,)), nominated)
    except PluginFailed as failure:
        return RejectedPod(pod.key, (plugin_status(failure.status),))
    verdicts = verdict_records(filtered, None, list(snapshot.node_names))
    statuses = tuple(
        status
        for verdict in verdicts
        if verdict.rejected_by is not None
        for status in (verdict.rejected_by, *verdict.also_rejected_by)
    )
    lacking = pod_shortages(state, pod, snapshot, verdicts)
    return RejectedPod(pod.key, statuses, lacking.shortages)


def _amounts(snapshot: Snapshot, row: int) -> tuple[dict[str, str], dict[str, str]]:
    allocatable = snapshot.allocatable[row].tolist()
    free = (snapshot.allocatable[row] - snapshot.requested[row]).tolist()
    free[PODS] = allocatable[PODS] - int(snapshot.num_pods[row])
    columns = [
        (column, name)
        for column, name in enumerate(snapshot.resources.names)
        if name and allocatable[column]
    ]
    return (
        {name: amount_text(name, allocatable[column]) for column, name in columns},
        {name: amount_text(name, free[column]) for column, name in columns},
    )
