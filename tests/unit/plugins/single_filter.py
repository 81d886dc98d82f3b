"""Runs PreFilter and Filter of one plugin."""

from __future__ import annotations

from stowage.api.objects.pod import Pod
from stowage.api.status import SKIP, SUCCESS, Status
from stowage.framework import CycleState, PreFilterResult
from stowage.framework.extension_points import FilterPlugin, PreFilterPlugin
from stowage.framework.node_verdicts import PluginVerdict
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes


def pre_filter(plugin: PreFilterPlugin, cluster: MirroredCluster, pod: Pod) -> PreFilterResult:
    """The result of PreFilter for a pod."""
    return plugin.pre_filter(CycleState(), cluster.info(pod), cluster.snapshot())


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
