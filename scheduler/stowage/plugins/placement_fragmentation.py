"""Plugin PlacementFragmentation: among equal placements, the one that leaves least fragments.

It is of Stowage alone; kube-scheduler v1.36 leaves equal placements to chance. Switch it off with
``plugins.multiPoint.disabled``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowage.framework import NoArgs, PlacedMembers, PluginTraits
from stowage.framework.verdict import Int64Array
from stowage.state.nodes.resource_index import CPU, MEMORY, PODS
from stowage.state.snapshot import Snapshot

_MILLI = 1000


class PlacementFragmentation:
    """Ranks placements by what would stay free on nodes that are in use.

    A node without pods is of use to any later gang, and a full one is no loss. What is left on a
    node in between is a fragment: it counts with the smaller of its free shares of cpu and memory.
    """

    name = "PlacementFragmentation"
    traits = PluginTraits()

    def __init__(self, args: NoArgs) -> None:
        del args

    def rank_placements(
        self, snapshot: Snapshot, placements: Sequence[PlacedMembers]
    ) -> Int64Array:
        """``int64[placements]``: the negative sum of the fragments, in thousandths of nodes."""
        return np.array([-_fragments_milli(snapshot, each) for each in placements], dtype=np.int64)


def _fragments_milli(snapshot: Snapshot, placement: PlacedMembers) -> int:
    rows = placement.rows
    requested = snapshot.requested[rows][:, [CPU, MEMORY]]
    num_pods = snapshot.num_pods[rows].copy()
    position = {row: index for index, row in enumerate(rows.tolist())}
    for pod, row in placement.placed:
        index = position[row]
        requested[index] += snapshot.request_vector(pod.pod_class)[[CPU, MEMORY]]
        num_pods[index] += 1
    allocatable = snapshot.allocatable[rows][:, [CPU, MEMORY]]
    free = np.maximum(allocatable - requested, 0)
    share = (free * _MILLI // np.maximum(allocatable, 1)).min(axis=1)
    is_open = num_pods < snapshot.allocatable[rows][:, PODS]
    return int(share[(num_pods > 0) & is_open].sum())
