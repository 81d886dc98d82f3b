"""What one scheduling cycle sees of the cluster: a read-only face of the live columns.

A snapshot copies nothing. The engine handles no events while a cycle runs, so what the snapshot
shows does not change under a plugin. `Snapshot.is_current` tells whether it is stale.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stowage.api.objects.node import Node, Taint
from stowage.state.arrays import BoolArray, Int32Array, Int64Array, read_only
from stowage.state.change_log import ChangeLog
from stowage.state.cluster_state import ClusterState
from stowage.state.custom_objects import CustomObjects
from stowage.state.devices.devices import Devices
from stowage.state.namespaces import Namespaces
from stowage.state.nodes.image_states import ImageState
from stowage.state.nodes.label_columns import LabelColumn
from stowage.state.nodes.node_columns import Amounts
from stowage.state.nodes.resource_index import ResourceIndex
from stowage.state.nodes.search_order import SearchOrder
from stowage.state.pods.disruption_budgets import DisruptionBudgets
from stowage.state.pods.pod_class import HostPort, PodClass
from stowage.state.pods.pod_groups import PodGroups
from stowage.state.pods.pod_index import PodIndex
from stowage.state.pods.pod_info import PodInfo
from stowage.state.pods.pod_variants import PodVariant
from stowage.state.storage.csi_nodes import CSINodeColumns
from stowage.state.storage.objects import Storage
from stowage.state.storage.volume_use import VolumeUse
from stowage.state.what_if.pod_index import WhatIfPodIndex
from stowage.state.what_if.removed_pods import RemovedPods, VariantValues
from stowage.state.what_if.row_changes import RowChanges
from stowage.state.workloads import Workloads

#: From so many rows on, `take` is faster than an index.
_MANY_ROWS = 256

ArrayT = TypeVar("ArrayT", bound=NDArray[Any])
_ValueT = TypeVar("_ValueT", bound=np.generic)

_ALL = slice(None)
#: With at least so many nodes to a value, computing by value costs less than by node.
_NODES_A_VALUE = 8


class LastAsked:
    """The last view and the last union of rows: Filter and Score ask for the same ones.

    They are kept beside the snapshot, since a view refers to its snapshot: a reference in the
    other direction would leave every snapshot to the cyclic garbage collector.
    """

    __slots__ = ("union", "view")

    def __init__(self) -> None:
        self.view: NodeView | None = None
        self.union: tuple[Int64Array, Int64Array, Int64Array] | None = None


class Snapshot:
    """The cluster as it is now, or as it would be (`WhatIfSnapshot`).

    Attributes:
        generation: The state's generation when the snapshot was taken.
        pods: Counts of pods by selector, and the affinity terms of existing pods.
        namespaces: Labels of namespaces.
        workloads: What Services and controllers select.
        budgets: The pod disruption budgets.
        pod_groups: The pod groups and their members; the same in what-ifs.
        storage: Claims, volumes and what belongs to them; the same in what-ifs.
        volume_use: What pods take of storage on each node.
        csi_nodes: Volume limits and migrated plugins of nodes.
        devices: Slices, classes, claims and allocated devices; the same in what-ifs.
        custom_objects: The objects of the resources that plugins registered.
        is_what_if: Whether this is the cluster as it would be.
    """

    __slots__ = (
        "_columns",
        "_last",
        "_state",
        "budgets",
        "csi_nodes",
        "custom_objects",
        "devices",
        "generation",
        "namespaces",
        "pod_groups",
        "pods",
        "storage",
        "volume_use",
        "workloads",
    )

    is_what_if = False

    def __init__(self, state: ClusterState, last: LastAsked) -> None:
        self._state = state
        self._last = last
        self._columns = state.columns
        self.generation = state.generation
        self.pods: PodIndex | WhatIfPodIndex = state.pods
        self.namespaces: Namespaces = state.namespaces
        self.workloads: Workloads = state.workloads
        self.budgets: DisruptionBudgets = state.budgets
        self.pod_groups: PodGroups = state.pod_groups
        self.storage: Storage = state.storage
        self.volume_use: VolumeUse = state.volume_use
        self.csi_nodes: CSINodeColumns = state.csi_nodes
        self.devices: Devices = state.devices
        self.custom_objects: CustomObjects = state.custom_objects

    @property
    def is_current(self) -> bool:
        """Whether nothing changed since the snapshot was taken."""
        return self.generation == self._state.generation

    @property
    def num_rows(self) -> int:
        """Number of rows, with or without a node."""
        return self._columns.num_rows

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self._columns.num_nodes

    @property
    def all_rows(self) -> Int64Array:
        """``int64[rows]``: 0, 1, 2, ..."""
        return self._columns.all_rows

    @property
    def exists(self) -> BoolArray:
        """``bool[rows]``: whether there is a node object."""
        return self._columns.exists

    @property
    def node_names(self) -> Sequence[str]:
        """``row -> node name``; meaningful where `exists`."""
        return self._columns.names

    @property
    def allocatable(self) -> Int64Array:
        """``int64[rows, resources]``: 0 for resources that a node does not have."""
        return self._columns.allocatable

    @property
    def requested(self) -> Int64Array:
        """``int64[rows, resources]``: what the pods on each node request."""
        return self._columns.requested

    @property
    def nonzero_requested(self) -> Int64Array:
        """``int64[rows, 2]``: cpu milli and memory bytes, with defaults for missing requests."""
        return self._columns.nonzero_requested

    @property
    def num_pods(self) -> Int64Array:
        """``int64[rows]``."""
        return self._columns.num_pods

    def amounts(self, row: int) -> Amounts:
        """The amounts above of a row, as one hashable value."""
        return self._columns.amounts(row)

    @property
    def unschedulable(self) -> BoolArray:
        """``bool[rows]``: ``spec.unschedulable``."""
        return self._columns.unschedulable

    @property
    def taint_set(self) -> Int32Array:
        """``int32[rows]``: codes in `taint_sets`; 0 is no taint."""
        return self._columns.taint_set

    @property
    def taint_sets(self) -> Sequence[tuple[Taint, ...] | None]:
        """``code -> taints``, without ``time_added``; None for a free code."""
        return self._columns.taint_sets.values

    @property
    def feature_set(self) -> Int32Array:
        """``int32[rows]``: codes in `feature_sets`; 0 is no feature."""
        return self._columns.feature_set

    @property
    def feature_sets(self) -> Sequence[frozenset[str] | None]:
        """``code -> declared features``; None for a free code."""
        return self._columns.feature_sets.values

    @property
    def resources(self) -> ResourceIndex:
        """The columns of resources."""
        return self._columns.resources

    @property
    def search_order(self) -> SearchOrder:
        """The order in which a limited search visits the nodes; the same in what-ifs."""
        return self._columns.search_order

    @property
    def node_changes(self) -> ChangeLog:
        """Rows whose node object was added, updated or removed."""
        return self._columns.node_changes

    @property
    def usage_changes(self) -> ChangeLog:
        """Rows whose pods changed."""
        return self._columns.usage_changes

    @property
    def all_nodes(self) -> NodeView:
        """All rows, those without a node included."""
        return NodeView(self, _ALL)

    def view(self, rows: slice | Int64Array) -> NodeView:
        """A view of some rows; the same view if `rows` is the same array as in the last call."""
        last = self._last.view
        if last is not None and last.index is rows and last.snapshot is self:
            return last
        return self._remembered(NodeView(self, rows))

    def ascending_view(self, rows: Int64Array, runs: tuple[slice, ...] | None = None) -> NodeView:
        """`view` for ascending rows; see `NodeView.of_ascending`."""
        last = self._last.view
        if last is not None and last.index is rows and last.snapshot is self:
            return last
        return self._remembered(NodeView.of_ascending(self, rows, runs))

    def _remembered(self, view: NodeView) -> NodeView:
        if not self.is_what_if:
            self._last.view = view
        return view

    def union(self, some: Int64Array, others: Int64Array) -> Int64Array:
        """The union, ascending; the same array if the arguments are those of the last call."""
        last = self._last.union
        if last is not None and last[0] is some and last[1] is others:
            return last[2]
        rows = read_only(np.array(sorted({*some.tolist(), *others.tolist()}), dtype=np.int64))
        self._last.union = (some, others, rows)
        return rows

    def row_of(self, node_name: str) -> int | None:
        """The row of a node; None if the node does not exist."""
        row = self._columns.row_of(node_name)
        return row if row is not None and self._columns.nodes[row] is not None else None

    def node(self, row: int) -> Node | None:
        """The node object of a row, if any."""
        return self._columns.nodes[row]

    def requested_by_name(self) -> list[dict[str, int]]:
        """Requests per row by resource, without zeros; visits all rows."""
        return self._columns.requested_by_name()

    def request_vector(self, pod_class: PodClass) -> Int64Array:
        """``int64[resources]``: what a pod requests, without resources that no node has."""
        return self._columns.request_vector(pod_class)

    def label_column(self, key: str) -> LabelColumn:
        """The column of a label; empty if no node has the label."""
        return self._columns.labels.column(key)

    def label_column_steps(self, pod_class: PodClass) -> Iterator[None]:
        """Build in steps the columns of labels that nothing before such pods has asked for."""
        yield from self._columns.labels.building_steps(pod_class.node_labels)
        yield from self._state.pods.groups.building_steps(pod_class.pod_labels)

    def label_codes(self, key: str) -> Int32Array:
        """``int32[rows]``: codes in `label_column`, -1 without the label."""
        return self._columns.labels.column(key).codes

    def all_have_label(self, key: str) -> bool:
        """Whether all nodes have a label; rows without a node have none."""
        column = self._columns.labels.column(key)
        return len(column.codes) - column.num_absent == self.num_nodes

    def image(self, name: str) -> ImageState | None:
        """Size and spread of an image by its name as nodes report it; None if no node has it."""
        return self._columns.images.get(name)

    def ports_in_conflict(
        self, ports: Iterable[HostPort], rows: slice | Int64Array = _ALL
    ) -> BoolArray:
        """``bool[rows]``: where one of these host ports conflicts with one in use."""
        return self._columns.host_ports.in_conflict(ports, rows)

    def colliding_ports(self, ports: Iterable[HostPort]) -> dict[HostPort, Int32Array]:
        """The host ports in use that conflict with one of `ports` -> ``int32[rows]`` users."""
        return self._columns.host_ports.colliding(ports)

    @property
    def pod_variants(self) -> Sequence[PodVariant | None]:
        """``code -> pod variant``, for pods on rows that `removed_pods` was asked for."""
        return self._state.ranked.variants.values

    def get_pod(self, uid: str) -> PodInfo | None:
        """The pod with this UID, if it is on a node."""
        return self._state.placed.get(uid)

    def pods_on(self, node_name: str) -> Collection[PodInfo]:
        """The pods on a node, which need not exist."""
        row = self._columns.row_of(node_name)
        return () if row is None else self._state.placed.on_row(row)

    def has_pods_below(self, priority: int) -> bool:
        """Whether any pod on a node has a lower priority; not for a what-if."""
        return any(each < priority for each in self._state.placed.num_by_priority)

    def removed_pods(self, rows: Int64Array, answers: VariantValues) -> RemovedPods:
        """The pods on some rows, none of them removed yet; not for a what-if."""
        return RemovedPods(self._state, rows, answers)

    def ranking_steps(self, rows: Int64Array) -> Iterator[None]:
        """Order the pods on some rows, which `removed_pods` needs, in steps."""
        return self._state.ranked.ranking_steps(rows, self.num_rows)


class NodeView:
    """Some or all nodes of a snapshot; entry i of each array is node i of the view.

    A view of a slice, or of consecutive rows, shares the snapshot's memory; any other view copies
    the columns that are read. Rows may have no node: see `exists`.

    Attributes:
        snapshot: The snapshot.
        index: The rows, as a slice or as row numbers.
        changes: For a row-local what-if, in which each node is shown as if it alone changed: the
            differences of each node. None if the nodes are as in the snapshot.
    """

    __slots__ = ("_allocatable", "_requested", "_runs", "_where", "changes", "index", "snapshot")

    def __init__(self, snapshot: Snapshot, index: slice | Int64Array) -> None:
        self.snapshot = snapshot
        self.index = index
        self._where = index
        self._runs: tuple[slice, ...] | None = None
        self.changes: RowChanges | None = None
        # Cached, since gathering rows costs as much as the arithmetic, and several plugins read.
        self._allocatable: Int64Array | None = None
        self._requested: Int64Array | None = None

    @classmethod
    def of_ascending(
        cls, snapshot: Snapshot, rows: Int64Array, runs: tuple[slice, ...] | None = None
    ) -> NodeView:
        """A view of ascending rows; if they are consecutive, it shares the snapshot's memory.

        Args:
            snapshot: The snapshot.
            rows: The rows.
            runs: The runs of consecutive rows, if known; see `Rows`.
        """
        view = cls(snapshot, rows)
        if len(rows) and int(rows[-1]) - int(rows[0]) + 1 == len(rows):
            view._where = slice(int(rows[0]), int(rows[-1]) + 1)
        else:
            view._runs = runs
        return view

    def __len__(self) -> int:
        if isinstance(self.index, slice):
            return len(range(*self.index.indices(self.snapshot.num_rows)))
        return len(self.index)

    @property
    def rows(self) -> Int64Array:
        """``int64[nodes]``: row numbers in the snapshot."""
        if isinstance(self.index, slice):
            return self.snapshot.all_rows[self.index]
        return self.index

    @property
    def names(self) -> list[str]:
        """Node names; empty for rows without a node."""
        names = self.snapshot.node_names
        if isinstance(self.index, slice):
            return list(names[self.index])
        return [names[row] for row in self.index.tolist()]

    @property
    def exists(self) -> BoolArray:
        """``bool[nodes]``: whether there is a node object."""
        return self.take(self.snapshot.exists)

    @property
    def allocatable(self) -> Int64Array:
        """``int64[nodes, resources]``."""
        if self._allocatable is None:
            self._allocatable = self.take(self.snapshot.allocatable)
            self._allocatable.flags.writeable = False
        return self._allocatable

    @property
    def requested(self) -> Int64Array:
        """``int64[nodes, resources]``: what the pods on each node request."""
        if self._requested is None:
            self._requested = self.take(self.snapshot.requested)
            self._requested.flags.writeable = False
        return self._requested

    @property
    def nonzero_requested(self) -> Int64Array:
        """``int64[nodes, 2]``: cpu milli and memory bytes, with defaults for missing requests."""
        return self.take(self.snapshot.nonzero_requested)

    @property
    def num_pods(self) -> Int64Array:
        """``int64[nodes]``."""
        return self.take(self.snapshot.num_pods)

    @property
    def unschedulable(self) -> BoolArray:
        """``bool[nodes]``: ``spec.unschedulable``."""
        return self.take(self.snapshot.unschedulable)

    @property
    def taint_set(self) -> Int32Array:
        """``int32[nodes]``: codes in ``snapshot.taint_sets``."""
        return self.take(self.snapshot.taint_set)

    @property
    def feature_set(self) -> Int32Array:
        """``int32[nodes]``: codes in ``snapshot.feature_sets``."""
        return self.take(self.snapshot.feature_set)

    def label_codes(self, key: str) -> Int32Array:
        """``int32[nodes]``: codes in ``snapshot.label_column(key)``, -1 without the label."""
        return self.take(self.snapshot.label_codes(key))

    def codes_present(self, key: str) -> NDArray[np.intp]:
        """The codes of a label's values on these nodes, ascending; rows without a node are none.

        The last one is ``num_values`` if a node lacks the label.
        """
        column = self.snapshot.label_column(key)
        if len(self) == self.snapshot.num_nodes and self.snapshot.all_have_label(key):
            return column.codes_in_use()
        present = np.zeros(column.num_values + 1, dtype=np.bool_)
        present[self.label_codes(key)] = True
        return np.flatnonzero(present)

    def has_few_values(self, key: str) -> bool:
        """Whether a label has few values for the number of these nodes."""
        return self.snapshot.label_column(key).num_values * _NODES_A_VALUE <= len(self)

    def positions_of(self, rows: Int64Array) -> tuple[Int64Array, BoolArray]:
        """Where some rows stand among these nodes, and which of them do; the nodes must ascend."""
        own = self.rows
        if isinstance(self._where, slice):
            positions = rows - int(own[0])
            return positions, (positions >= 0) & (positions < len(own))
        positions = np.minimum(np.searchsorted(own, rows), len(own) - 1)
        return positions, own[positions] == rows

    def by_label(self, key: str, table: NDArray[_ValueT]) -> NDArray[_ValueT]:
        """``[nodes]``: the entries of a table over the values of a label; not to be written to.

        Args:
            key: The label.
            table: ``[values + 1]``; the last entry is for nodes without the label.
        """
        column = self.snapshot.label_column(key)
        if self._runs and column.is_by_row:
            return np.concatenate([column.entries(table, run) for run in self._runs])
        return column.entries(table, self._where)

    def ports_in_conflict(self, ports: Iterable[HostPort]) -> BoolArray:
        """``bool[nodes]``: where one of these host ports collides with one in use."""
        return self.snapshot.ports_in_conflict(ports, self._where)

    def take(self, array: ArrayT) -> ArrayT:
        """The entries of an array over all rows for these nodes; callers must not write."""
        where = self._where
        if self._runs:
            return np.concatenate([array[run] for run in self._runs])  # type: ignore[return-value]  # as `array`
        if isinstance(where, slice) or len(where) < _MANY_ROWS or array.ndim > 1:
            return array[where]  # type: ignore[return-value]  # as `array`
        # The same for rows that exist, in half the time. It would copy an array of amounts, which
        # is not contiguous, before it takes anything.
        return array.take(where, mode="wrap")  # type: ignore[return-value]  # as `array`

    def copied(self, array: ArrayT) -> ArrayT:
        """A writable copy of the entries of an array over all rows for these nodes."""
        entries = self.take(array)
        return entries.copy() if entries.base is not None else entries
