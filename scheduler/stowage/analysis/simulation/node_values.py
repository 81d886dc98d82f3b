"""What the columns of all nodes say at a sample time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from stowage.api.values.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from stowage.state.arrays import BoolArray, Int64Array
from stowage.state.snapshot import Snapshot

Requests: TypeAlias = Mapping[str, int]
"""Resource name -> amount that one pod requests."""
FloatArray: TypeAlias = NDArray[np.float64]

_UNCOUNTED = frozenset({"", EPHEMERAL_STORAGE, PODS})


def node_values(snapshot: Snapshot, recent: Sequence[Requests]) -> dict[str, float]:
    """Allocation, imbalance and fragmentation of the nodes.

    - ``nodes``, ``nodes_used``: number of nodes, and of those with a pod.
    - ``allocated_<resource>_pct``: requested share of what all nodes have.
    - ``imbalance``: standard deviation over the nodes of the requested share, mean over resources.
    - ``fragmentation``: share of what is free on nodes where a recent pod that requests the
      resource does not fit; mean over these pods, then over the resources that they request.

    Resources are cpu, memory and the extended resources that some node has.

    Args:
        snapshot: The cluster.
        recent: The requests of the pods that arrived last.

    Returns:
        Name -> value; shares in percent.
    """
    rows = np.flatnonzero(snapshot.exists)
    num_pods = snapshot.num_pods[rows]
    values = {"nodes": float(len(rows)), "nodes_used": float(np.count_nonzero(num_pods))}
    names, columns = _resources(snapshot.resources.names, snapshot.allocatable[rows])
    allocatable = snapshot.allocatable[rows][:, columns]
    requested = snapshot.requested[rows][:, columns]
    shares, deviations = _shares(allocatable, requested)
    for name, share in zip(names, shares.tolist(), strict=True):
        values[f"allocated_{name}_pct"] = share
    values["imbalance"] = float(deviations.mean()) if names else 0.0
    room = snapshot.allocatable[rows, snapshot.resources.index_of(PODS)] > num_pods
    free = np.maximum(allocatable - requested, 0)
    demands = np.array([[each.get(name, 0) for name in names] for each in recent], dtype=np.int64)
    values["fragmentation"] = fragmentation_pct(
        free, room, demands.reshape(len(recent), len(names))
    )
    return values


def fragmentation_pct(free: Int64Array, room: BoolArray, demands: Int64Array) -> float:
    """The share of free resources that pods cannot use, in percent.

    For one resource and one pod that requests it: what is free on the nodes where the pod does not
    fit, divided by what is free. The mean over such pods, then over the resources with such pods.

    Args:
        free: ``int64[nodes, resources]``, not negative.
        room: ``bool[nodes]``, whether one more pod may run there.
        demands: ``int64[pods, resources]``.

    Examples:
        Two nodes have 3 and 1 free, and pods request 2: a quarter of what is free is of no use.

        >>> free = np.array([[3], [1]])
        >>> fragmentation_pct(free, np.array([True, True]), np.array([[2]]))
        25.0
    """
    kinds, counts = np.unique(demands, axis=0, return_counts=True)
    wants = kinds > 0
    fits = room & ((kinds[:, None, :] <= free) | ~wants[:, None, :]).all(axis=2)
    total = free.sum(axis=0, dtype=np.float64)
    unusable = (~fits).astype(np.float64) @ free.astype(np.float64)
    weights = np.where(wants, counts[:, None], 0).astype(np.float64)
    most: FloatArray = weights.sum(axis=0) * total
    judged = most > 0
    if not judged.any():
        return 0.0
    lost: FloatArray = (unusable * weights).sum(axis=0)
    return float((100 * lost[judged] / most[judged]).mean())


def _resources(names: Sequence[str], allocatable: Int64Array) -> tuple[list[str], list[int]]:
    """The counted resources that some node has, cpu and memory first, and their columns."""
    owned = np.flatnonzero((allocatable > 0).any(axis=0)).tolist()
    found = {names[column]: column for column in owned if names[column] not in _UNCOUNTED}
    ordered = sorted(found, key=lambda name: (name not in (CPU, MEMORY), name))
    return ordered, [found[name] for name in ordered]


def _shares(allocatable: Int64Array, requested: Int64Array) -> tuple[FloatArray, FloatArray]:
    """Per resource the requested share of all nodes, and its standard deviation, in percent.

    A node without a resource does not count for it.
    """
    has = allocatable > 0
    taken = np.where(has, requested, 0)
    share = 100 * taken / np.where(has, allocatable, 1)
    num = np.maximum(has.sum(axis=0), 1)
    mean = share.sum(axis=0) / num
    deviation = np.sqrt((np.where(has, share - mean, 0.0) ** 2).sum(axis=0) / num)
    total = np.maximum(np.where(has, allocatable, 0).sum(axis=0, dtype=np.float64), 1)
    whole: FloatArray = 100 * taken.sum(axis=0, dtype=np.float64) / total
    return whole, deviation
