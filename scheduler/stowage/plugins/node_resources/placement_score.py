"""MostAllocated over whole placements of a pod group, as NodeResourcesFit scores them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowage.api.values.resource_names import CPU, MEMORY
from stowage.framework import PlacedMembers
from stowage.framework.verdict import Int64Array
from stowage.plugins.node_resources.allocation import counts, request_with_defaults
from stowage.plugins.node_resources.args import ResourceSpec
from stowage.plugins.node_resources.most_allocated import most_allocated_score
from stowage.state.snapshot import Snapshot

#: Columns of ``Snapshot.nonzero_requested``.
_NONZERO_COLUMNS = {CPU: 0, MEMORY: 1}


def most_allocated_placements(
    snapshot: Snapshot, placements: Sequence[PlacedMembers], resources: Sequence[ResourceSpec]
) -> Int64Array:
    """``int64[placements]`` in 0..100: how much of each placement would be taken.

    Per resource ``100 * (requests on the placement's nodes + requests of the placed members) //
    allocatable of its nodes``; per placement the weighted mean. Always MostAllocated, whatever the
    strategy for nodes. As for nodes, an extended resource that no placed member requests does not
    count, and requests are those of the containers.
    """
    shape = (len(placements), len(resources))
    requested = np.zeros(shape, dtype=np.int64)
    allocatable = np.zeros(shape, dtype=np.int64)
    for index, placement in enumerate(placements):
        for column, resource in enumerate(resources):
            members = sum(
                request_with_defaults(pod.pod_class, resource.name) for pod, _ in placement.placed
            )
            if counts(resource.name, members):
                taken, have = _totals(snapshot, placement.rows, resource.name)
                requested[index, column] = taken + members
                allocatable[index, column] = have
    weights = np.array([each.effective_weight for each in resources], dtype=np.int64)
    return most_allocated_score(requested, allocatable, weights)


def _totals(snapshot: Snapshot, rows: Int64Array, resource: str) -> tuple[int, int]:
    """What pods request of a resource on some nodes, and what these have."""
    column = snapshot.resources.index_of(resource)
    if column is None:
        return 0, 0
    nonzero = _NONZERO_COLUMNS.get(resource)
    taken = (
        snapshot.requested[rows, column]
        if nonzero is None
        else snapshot.nonzero_requested[rows, nonzero]
    )
    return int(taken.sum()), int(snapshot.allocatable[rows, column].sum())
