"""MostAllocated over whole placements of a pod group, as NodeResourcesFit scores them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowage.api.values.resource_names import CPU, MEMORY
from stowage.framework import PlacedMembers, Prospects
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
                taken, have = _amounts(snapshot, placement.rows, resource.name)
                requested[index, column] = taken.sum() + members
                allocatable[index, column] = have.sum()
    return most_allocated_score(requested, allocatable, _weights(resources))


def most_allocated_with(
    snapshot: Snapshot, prospects: Prospects, most: Int64Array, resources: Sequence[ResourceSpec]
) -> Int64Array | None:
    """``int64[placements]``: what `most_allocated_placements` says if each takes `most` members.

    If the members are not alike, each placement counts as if it took all of them. None if some of
    them alone may score higher: they do not request a resource that counts with the others.
    """
    shape = (len(prospects.starts), len(resources))
    requested = np.zeros(shape, dtype=np.int64)
    allocatable = np.zeros(shape, dtype=np.int64)
    are_alike = prospects.are_alike
    for column, resource in enumerate(resources):
        requests = [
            request_with_defaults(pod.pod_class, resource.name) for pod in prospects.members
        ]
        if len({counts(resource.name, each) for each in requests}) > 1:
            return None
        if counts(resource.name, requests[0]):
            taken, have = _amounts(snapshot, prospects.rows, resource.name)
            members = most * requests[0] if are_alike else sum(requests)
            requested[:, column] = prospects.sums(taken) + members
            allocatable[:, column] = prospects.sums(have)
    return most_allocated_score(requested, allocatable, _weights(resources))


def _weights(resources: Sequence[ResourceSpec]) -> Int64Array:
    return np.array([each.effective_weight for each in resources], dtype=np.int64)


def _amounts(snapshot: Snapshot, rows: Int64Array, resource: str) -> tuple[Int64Array, Int64Array]:
    """``int64[nodes]`` each: what pods request of a resource on some nodes, and what these have."""
    column = snapshot.resources.index_of(resource)
    if column is None:
        nothing = np.zeros(len(rows), dtype=np.int64)
        return nothing, nothing
    nonzero = _NONZERO_COLUMNS.get(resource)
    taken = (
        snapshot.requested[rows, column]
        if nonzero is None
        else snapshot.nonzero_requested[rows, nonzero]
    )
    return taken, snapshot.allocatable[rows, column]
