"""Compares a plugin's shared scores with its scores node by node."""

from __future__ import annotations

import numpy as np

from stowage.framework import CycleState
from stowage.framework.shared_scores import SharedScorePlugin, TotalsArray
from stowage.framework.verdict import Int64Array
from stowage.plugins.inter_pod_affinity import InterPodAffinity
from stowage.plugins.pod_topology_spread import PodTopologySpread
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView

_WEIGHT = 3


def check_shared_scores(
    plugin: InterPodAffinity | PodTopologySpread,
    state: CycleState,
    pod: PodInfo,
    nodes: NodeView,
    raw: Int64Array,
) -> str:
    """Assert that the shared scores stand for `raw`; returns the form in which they came."""
    assert isinstance(plugin, SharedScorePlugin)
    normalized = plugin.normalize_score(state, pod, nodes, raw)
    shared = plugin.shared_scores(state, pod, nodes)
    if isinstance(shared, np.ndarray):
        assert shared.tolist() == raw.tolist()
        return "nodes"
    of_distinct = plugin.normalize_score(state, pod, nodes, shared.distinct)
    picked = shared.picked(np.arange(len(nodes)), of_distinct)
    assert picked == (tuple(raw.tolist()), tuple(normalized.tolist()))
    for width in (np.int16, np.int64):
        total: TotalsArray = np.zeros(len(nodes), dtype=width)
        total += np.arange(len(nodes), dtype=np.int16)
        shared.add_to(total, of_distinct * _WEIGHT)
        assert total.tolist() == (np.arange(len(nodes)) + normalized * _WEIGHT).tolist()
    return type(shared).__name__
