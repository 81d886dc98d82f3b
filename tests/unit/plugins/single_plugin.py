"""Runs PreFilter, Filter or Score of one plugin."""

from __future__ import annotations

from collections.abc import Sequence

from stowage.api.objects.pod import Pod
from stowage.api.objects.volume import StorageObject, Volume
from stowage.api.status import SKIP, SUCCESS, Code, Status
from stowage.framework import CycleState, PreFilterResult
from stowage.framework.extension_points import FilterPlugin, PreFilterPlugin
from stowage.framework.node_verdicts import PluginVerdict
from stowage.plugins.inter_pod_affinity import InterPodAffinity
from stowage.plugins.pod_topology_spread import PodTopologySpread
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes, verdicts_by_node

Verdicts = dict[str, tuple[str, bool]]
Scores = dict[str, tuple[int, int]]


def pre_filter(plugin: PreFilterPlugin, cluster: MirroredCluster, pod: Pod) -> PreFilterResult:
    """The result of PreFilter for a pod."""
    return plugin.pre_filter(CycleState(), cluster.info(pod), cluster.snapshot())


def pre_filter_of_volume(plugin: PreFilterPlugin, volume: Volume, *objects: StorageObject) -> str:
    """PreFilter for a pod with this volume: the message of a rejection, else its code."""
    cluster = MirroredCluster([make_node("n0")])
    cluster.update_storage(*objects)
    status = pre_filter(plugin, cluster, make_pod("p", volumes=(volume,))).status
    if status.is_rejected:
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return status.message
    return status.code.title


def refused(plugin: FilterPlugin, cluster: MirroredCluster, pod: Pod) -> dict[str, Status]:
    """The nodes that a plugin rejects, with its status; none if PreFilter skips it.

    Raises:
        AssertionError: PreFilter rejects the pod.
    """
    state, info, snapshot = CycleState(), cluster.info(pod), cluster.snapshot()
    if isinstance(plugin, PreFilterPlugin):
        status = plugin.pre_filter(state, info, snapshot).status
        assert status in (SUCCESS, SKIP)
        if status.is_skip:
            return {}
    nodes = existing_nodes(snapshot)
    answer = PluginVerdict(plugin.name, plugin.filter(state, info, nodes))
    statuses = {name: answer.status(index) for index, name in enumerate(nodes.names)}
    return {name: status for name, status in statuses.items() if not status.is_success}


def verdicts(
    plugin: InterPodAffinity | PodTopologySpread, cluster: MirroredCluster, pod: Pod
) -> Verdicts | None:
    """Reasons by node; None if Filter is skipped."""
    state, snapshot, info = CycleState(), cluster.snapshot(), cluster.info(pod)
    if plugin.pre_filter(state, info, snapshot).status.is_skip:
        return None
    nodes = existing_nodes(snapshot)
    return verdicts_by_node(plugin.filter(state, info, nodes), nodes)


def scores(
    plugin: InterPodAffinity | PodTopologySpread,
    cluster: MirroredCluster,
    pod: Pod,
    feasible: Sequence[str] | None = None,
) -> Scores | None:
    """Raw and normalised score by node; None if Score is skipped."""
    state, nodes, info = CycleState(), existing_nodes(cluster.snapshot()), cluster.info(pod)
    if feasible is not None:
        nodes = nodes.snapshot.view(nodes.rows[[name in feasible for name in nodes.names]])
    if plugin.pre_score(state, info, nodes).is_skip:
        return None
    raw = plugin.score(state, info, nodes)
    normalized = plugin.normalize_score(state, info, nodes, raw)
    pairs = zip(raw.tolist(), normalized.tolist(), strict=True)
    return dict(zip(nodes.names, pairs, strict=True))
