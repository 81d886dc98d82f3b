"""All nodes as columns: what the map draws."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowage.analysis.loaded_cluster import LoadedCluster
from stowage.analysis.near_misses import taint_text
from stowage.api.objects.node import Taint
from stowage.api.values.resource_names import CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, MEMORY
from stowage.console.answers.answer import Answer, rfc3339
from stowage.console.clusters.moment import Moment
from stowage.state.arrays import Int64Array
from stowage.state.snapshot import Snapshot

ZONE = "topology.kubernetes.io/zone"
MAX_GROUPS = 1_000
"""Labels with more values are not offered as groups."""

PRESSURES = {
    "memory": ("node.kubernetes.io/memory-pressure",),
    "disk": ("node.kubernetes.io/disk-pressure",),
    "pid": ("node.kubernetes.io/pid-pressure",),
    "network": ("node.kubernetes.io/network-unavailable",),
    "notReady": ("node.kubernetes.io/not-ready",),
    "unreachable": ("node.kubernetes.io/unreachable",),
}
"""Pressure -> the taints by which the node controller shows it."""

_NONE = -1


class ResourceColumn(Answer, frozen=True):
    """A resource of all nodes.

    Attributes:
        name: The resource.
        unit: ``milli``, ``bytes`` or ``count``.
        allocatable: Amount of all nodes, in `unit`.
        requested: What the pods on nodes request, in `unit`.
        permille: For each node, requested / allocatable in thousandths; -1 if it has none.
    """

    name: str
    unit: str
    allocatable: int
    requested: int
    permille: list[int]


class LabelKey(Answer, frozen=True):
    """A label that can group the nodes, and the number of its values."""

    key: str
    values: int


class NodeGroups(Answer, frozen=True):
    """The groups of a label; code -> value, empty for nodes without the label."""

    key: str
    values: list[str]
    codes: list[int]


class ClusterCounts(Answer, frozen=True):
    """Numbers of nodes, of pods on nodes, and of pods without a node."""

    nodes: int
    placed: int
    pending: int


class ClusterMap(Answer, frozen=True):
    """All nodes by name; entry i of each array is node i.

    Attributes:
        taint_sets: Code -> taints.
        taints: The code of each node.
        pressure: Bit k stands for ``pressures[k]``.
    """

    version: int
    time: str
    num: int
    names: list[str]
    label_keys: list[LabelKey]
    group: NodeGroups
    resources: list[ResourceColumn]
    pods: list[int]
    unschedulable: list[int]
    taint_sets: list[list[str]]
    taints: list[int]
    pressures: list[str]
    pressure: list[int]
    summary: ClusterCounts


class NodeRows(Answer, frozen=True):
    """Some nodes, to be drawn anew."""

    version: int
    names: list[str]
    pods: list[int]
    unschedulable: list[int]
    taints: list[list[str]]
    pressure: list[int]
    permille: dict[str, list[int]]
    summary: ClusterCounts


def cluster_map(moment: Moment, group: str = ZONE) -> ClusterMap:
    """The columns of all nodes, grouped by a label."""
    snapshot = moment.snapshot
    rows = rows_by_name(snapshot)
    codes = np.unique(snapshot.taint_set[rows])
    sets = [snapshot.taint_sets[code] or () for code in codes.tolist()]
    taints = np.searchsorted(codes, snapshot.taint_set[rows])
    pressure = np.array([pressure_bits(each) for each in sets] or [0], dtype=np.int64)
    return ClusterMap(
        moment.version,
        rfc3339(moment.unix_s),
        len(rows),
        [snapshot.node_names[row] for row in rows.tolist()],
        _label_keys(snapshot, rows),
        _groups(snapshot, rows, group),
        _resources(snapshot, rows),
        snapshot.num_pods[rows].tolist(),
        snapshot.unschedulable[rows].astype(np.int64).tolist(),
        [list(map(taint_text, each)) for each in sets],
        taints.tolist(),
        list(PRESSURES),
        pressure[taints].tolist() if len(rows) else [],
        cluster_counts(moment.loaded),
    )


def node_rows(moment: Moment, rows: Int64Array) -> NodeRows:
    """The nodes among ``int64[n]`` `rows` of the snapshot; rows without a node are left out."""
    snapshot = moment.snapshot
    rows = rows[snapshot.exists[rows]]
    sets = [snapshot.taint_sets[code] or () for code in snapshot.taint_set[rows].tolist()]
    return NodeRows(
        moment.version,
        [snapshot.node_names[row] for row in rows.tolist()],
        snapshot.num_pods[rows].tolist(),
        snapshot.unschedulable[rows].astype(np.int64).tolist(),
        [list(map(taint_text, each)) for each in sets],
        [pressure_bits(each) for each in sets],
        {each.name: each.permille for each in _resources(snapshot, rows, only_shown=False)},
        cluster_counts(moment.loaded),
    )


def rows_by_name(snapshot: Snapshot) -> Int64Array:
    """``int64[nodes]``: the rows that have a node, in the order of the names."""
    names = snapshot.node_names
    rows = np.flatnonzero(snapshot.exists).tolist()
    return np.array(sorted(rows, key=lambda row: names[row]), dtype=np.int64)


def cluster_counts(loaded: LoadedCluster) -> ClusterCounts:
    """Count the nodes and pods of a cluster."""
    pods = loaded.objects.pods_by_node()
    num_nodes = loaded.engine.state.cache.snapshot().num_nodes
    return ClusterCounts(num_nodes, pods.num_pods - pods.num_pending, pods.num_pending)


def pressure_bits(taints: Sequence[Taint]) -> int:
    """Bit k is set if a taint shows pressure k of `PRESSURES`."""
    keys = {taint.key for taint in taints}
    return sum(1 << bit for bit, of in enumerate(PRESSURES.values()) if keys.intersection(of))


def unit_of(resource: str) -> str:
    """The unit of the amounts of a resource."""
    if resource == CPU:
        return "milli"
    is_bytes = resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGEPAGES_PREFIX)
    return "bytes" if is_bytes else "count"


def requested_with_pods(snapshot: Snapshot, rows: Int64Array) -> Int64Array:
    """``int64[nodes, resources]`` of requests, in which the resource ``pods`` counts pods."""
    requested = snapshot.requested[rows].copy()
    column = snapshot.resources.index_of("pods")
    if column is not None:
        requested[:, column] = snapshot.num_pods[rows]
    return requested


def _resources(
    snapshot: Snapshot, rows: Int64Array, *, only_shown: bool = True
) -> list[ResourceColumn]:
    """The columns of the resources that some of the nodes have, or of all resources."""
    allocatable = snapshot.allocatable[rows]
    requested = requested_with_pods(snapshot, rows)
    has = allocatable > 0
    shares = np.rint(requested / np.where(has, allocatable, 1) * 1000.0).astype(np.int64)
    permille = np.where(has, shares, _NONE)
    return [
        ResourceColumn(
            name,
            unit_of(name),
            int(allocatable[:, column].sum()),
            int(requested[has[:, column], column].sum()),
            permille[:, column].tolist(),
        )
        for column, name in enumerate(snapshot.resources.names)
        if name and (not only_shown or has[:, column].any())
    ]


def _label_keys(snapshot: Snapshot, rows: Int64Array) -> list[LabelKey]:
    values: dict[str, set[str]] = {}
    for row in rows.tolist():
        node = snapshot.node(row)
        for key, value in () if node is None else node.metadata.labels.items():
            values.setdefault(key, set()).add(value)
    return [
        LabelKey(key, len(found))
        for key, found in sorted(values.items())
        if len(found) <= MAX_GROUPS
    ]


def _groups(snapshot: Snapshot, rows: Int64Array, key: str) -> NodeGroups:
    column = snapshot.label_column(key)
    codes = column.codes[rows]
    used = np.unique(codes).tolist()
    named = sorted((column.value(code) or "", code) for code in used if code >= 0)
    ordered = [*named, *(("", code) for code in used if code < 0)]
    place = {code: index for index, (_, code) in enumerate(ordered)}
    return NodeGroups(
        key, [value for value, _ in ordered], [place[code] for code in codes.tolist()]
    )
