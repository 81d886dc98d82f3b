"""The columns of nodes: allocatable resources, usage, labels, taints, images, host ports.

A row belongs to a node name while there is a node object or a pod on it, or a storage object holds
it. Without the node object (deleted before its pods, or not received yet) the row is imaginary:
`exists` is False, and the usage of its pods is kept. Arrays are as long as the capacity, so their
length changes rarely. Readers get read-only views of live memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec
import numpy as np

from stowage.api.objects.node import ContainerImage, Node, Taint
from stowage.api.values.resources import node_allocatable
from stowage.state.arrays import (
    Int64Array,
    add_wrapping,
    extended,
    grown_capacity,
    read_only,
    wrapped_int64,
)
from stowage.state.change_log import ChangeLog
from stowage.state.interning import Interner
from stowage.state.nodes.amounts import column_capacity, copied_amounts, is_dense, zero_amounts
from stowage.state.nodes.host_ports import HostPorts
from stowage.state.nodes.image_states import ImageStates
from stowage.state.nodes.label_columns import LabelColumns
from stowage.state.nodes.resource_index import ResourceIndex
from stowage.state.nodes.search_order import SearchOrder
from stowage.state.pods.pod_class import PodClass
from stowage.state.row_counts import RowCounts

TaintSet = tuple[Taint, ...]
Amounts: TypeAlias = tuple[int, ...]
"""Version of the resource index; allocatable, requested and non-zero requested amounts; pods."""
_NO_LABELS: Mapping[str, str] = {}
_NO_IMAGES: tuple[ContainerImage, ...] = ()
_NO_NAMES: frozenset[str] = frozenset()
_INITIAL_CAPACITY = 64


class NodeColumns:
    """Columns over node rows; written by the cache only.

    Attributes:
        exists: ``bool[rows]``, whether the row has a node object.
        names: ``row -> node name``, also of imaginary rows; empty for free rows.
        nodes: ``row -> node object``; None without one.
        allocatable: ``int64[rows, resources]``, 0 for resources that a node does not have.
        requested: ``int64[rows, resources]``, sum over the pods of the row.
        requested_elsewhere: Sums for resources that no node has, and that have no column.
        nonzero_requested: ``int64[rows, 2]``, cpu milli and memory bytes with defaults.
        num_pods: ``int64[rows]``.
        unschedulable: ``bool[rows]``, ``spec.unschedulable``.
        taint_set: ``int32[rows]``, code in `taint_sets`; 0 is the empty set.
        feature_set: ``int32[rows]``, code in `feature_sets`; 0 is the empty set.
        search_order: The order in which a limited search visits the nodes.
        node_changes: Rows whose node object was added, updated or removed.
        usage_changes: Rows whose pods changed.
        growth_observers: Called with the new number of rows after the arrays grew.
    """

    def __init__(self) -> None:
        rows = _INITIAL_CAPACITY
        self.num_rows = rows
        self.num_nodes = 0
        self.resources = ResourceIndex()
        self.names: list[str] = [""] * rows
        self.nodes: list[Node | None] = [None] * rows
        self.labels = LabelColumns(self._labels_of, rows, keeps_unused=True)
        self.images = ImageStates(rows)
        self.host_ports = HostPorts(rows)
        self.search_order = SearchOrder(rows)
        self.taint_sets: Interner[TaintSet] = Interner()
        self.feature_sets: Interner[frozenset[str]] = Interner()
        self.taint_sets.acquire(())
        self.feature_sets.acquire(frozenset())
        self.node_changes = ChangeLog()
        self.usage_changes = ChangeLog()
        self.growth_observers: list[Callable[[int], None]] = []
        self._held: Counter[int] = Counter()
        self._row_of: dict[str, int] = {}
        self._free = list(range(rows - 1, -1, -1))
        self._resource_names: dict[int, frozenset[str]] = {}
        self.requested_elsewhere: RowCounts[str] = RowCounts()
        width = len(self.resources)
        self.all_rows: Int64Array = read_only(np.arange(rows, dtype=np.int64))
        self._exists = np.zeros(rows, dtype=np.bool_)
        self._unschedulable = np.zeros(rows, dtype=np.bool_)
        self._taint_set = np.zeros(rows, dtype=np.int32)
        self._feature_set = np.zeros(rows, dtype=np.int32)
        self._num_pods = np.zeros(rows, dtype=np.int64)
        # As wide as needed for the resources, or wider.
        self._allocatable = zero_amounts(rows, width)
        self._requested = zero_amounts(rows, width)
        self._nonzero_requested = np.zeros((rows, 2), dtype=np.int64, order="F")
        self._publish()

    def row_of(self, name: str) -> int | None:
        """The row of a node, imaginary or not."""
        return self._row_of.get(name)

    def request_vector(self, pod_class: PodClass) -> Int64Array:
        """``int64[resources]`` of what a pod requests, in the columns of `allocatable`."""
        return self.resources.requests(pod_class).vector

    def amounts(self, row: int) -> Amounts:
        """The amounts of a row as one hashable value."""
        return (self.resources.version, *[cells[row] for cells in self._amount_cells])

    def requested_by_name(self) -> list[dict[str, int]]:
        """What the pods of each row request by resource, without zeros; for dumps."""
        return [self.requested_of(row) for row in range(self.num_rows)]

    def requested_of(self, row: int) -> dict[str, int]:
        """What the pods of a row request by resource, without zeros; for dumps and checks."""
        amounts = zip(self.resources.names, self.requested[row].tolist(), strict=True)
        requested = {name: amount for name, amount in amounts if amount}
        for name in self.requested_elsewhere:
            amount = self.requested_elsewhere.at(name).get(row)
            if amount:
                requested[name] = amount
        return requested

    def ensure_row(self, name: str) -> int:
        """The row of a node; an unknown node gets an imaginary row."""
        row = self._row_of.get(name)
        if row is None:
            if not self._free:
                self._grow(grown_capacity(self.num_rows))
            row = self._free.pop()
            self._row_of[name] = row
            self.names[row] = name
        return row

    def hold(self, name: str) -> int:
        """The row of a node, reserved until `release`: a storage object belongs to the node."""
        row = self.ensure_row(name)
        self._held[row] += 1
        return row

    def release(self, row: int) -> None:
        """Undo one `hold`."""
        self._held[row] -= 1
        if not self._held[row]:
            del self._held[row]
        self.free_if_unused(row)

    def is_held(self, row: int) -> bool:
        """Whether a storage object holds the row."""
        return row in self._held

    def set_node(self, node: Node) -> int:
        """Add or update a node object; returns its row.

        Raises:
            InvalidObject: A quantity cannot be parsed; nothing has changed.
        """
        amounts = node_allocatable(node)
        row = self.ensure_row(node.metadata.name)
        old = self.nodes[row]
        self._set_allocatable(row, amounts)
        self._unschedulable[row] = node.spec.unschedulable
        self._set_taints(row, tuple(_without_time(taint) for taint in node.spec.taints))
        self._set_features(row, frozenset(node.status.declared_features))
        self.labels.update(row, old.metadata.labels if old else _NO_LABELS, node.metadata.labels)
        images = self.images.replace(
            row, old.status.images if old else _NO_IMAGES, node.status.images
        )
        self.nodes[row] = _with_images(node, images)
        self.search_order.put(row, node.metadata.labels)
        if old is None:
            self._exists[row] = True
            self.num_nodes += 1
        self.node_changes.record(row)
        return row

    def keep_node(self, row: int, node: Node) -> None:
        """Replace the object of a node whose columns did not change."""
        old = self.nodes[row]
        assert old is not None  # noqa: S101 - the caller compared it with `node`
        self.nodes[row] = _with_images(node, old.status.images)

    def unset_node(self, row: int) -> None:
        """Remove the node object from a row; the usage of its pods stays."""
        node = self.nodes[row]
        assert node is not None  # noqa: S101 - the caller looked it up
        self._set_allocatable(row, {})
        self._unschedulable[row] = False
        self._set_taints(row, ())
        self._set_features(row, frozenset())
        self.labels.update(row, node.metadata.labels, _NO_LABELS)
        self.images.replace(row, node.status.images, _NO_IMAGES)
        self.nodes[row] = None
        self.search_order.remove(row)
        self._exists[row] = False
        self.num_nodes -= 1
        self.node_changes.record(row)

    def add_pod(self, row: int, pod_class: PodClass) -> None:
        """Add the usage of a pod to a row."""
        self._change_usage(row, pod_class, 1)
        if pod_class.host_ports:
            self.host_ports.add(row, pod_class.host_ports)

    def remove_pod(self, row: int, pod_class: PodClass) -> None:
        """Remove the usage of a pod from a row."""
        self._change_usage(row, pod_class, -1)
        if pod_class.host_ports:
            self.host_ports.remove(row, pod_class.host_ports)

    def free_if_unused(self, row: int) -> None:
        """Free a row that has no node object, no pods and no holders."""
        if self.nodes[row] is None and not self._num_pods_cells[row] and row not in self._held:
            del self._row_of[self.names[row]]
            self.names[row] = ""
            self._free.append(row)

    def with_own_usage(self) -> NodeColumns:
        """A copy for a what-if: usage is copied, all else is shared.

        Only `add_pod` and `remove_pod` may be called on it.
        """
        twin = object.__new__(NodeColumns)
        twin.__dict__.update(self.__dict__)
        rows, columns = self._requested.shape
        filled = self.resources.requested_columns
        twin._requested = copied_amounts(self._requested, rows, columns, filled)
        twin._nonzero_requested = self._nonzero_requested.copy(order="F")
        twin._num_pods = self._num_pods.copy()
        twin.requested_elsewhere = RowCounts(self.requested_elsewhere)
        twin.host_ports = self.host_ports.copy()
        twin.usage_changes = ChangeLog()
        twin._publish()
        return twin

    def _labels_of(self, row: int) -> Mapping[str, str]:
        node = self.nodes[row]
        return _NO_LABELS if node is None else node.metadata.labels

    def _set_allocatable(self, row: int, amounts: Mapping[str, int]) -> None:
        """Replace the resources of a node; only their cells are touched."""
        column_of = self.resources.column_of
        for name in self._resource_names.get(row, _NO_NAMES):
            self._allocatable[row, column_of(name)] = 0
        self._hold_resources(row, frozenset(amounts))
        for name, amount in amounts.items():
            self._allocatable[row, column_of(name)] = amount

    def _hold_resources(self, row: int, names: frozenset[str]) -> None:
        """Add columns for new resources of a node; free columns of resources that no node has."""
        held = self._resource_names.pop(row, _NO_NAMES)
        if names:
            self._resource_names[row] = names
        new = self.resources.acquire(names - held)
        width = len(self.resources)
        if self.requested.shape[1] != width:
            if self._requested.shape[1] < width:
                self._copy_amounts(self.num_rows, column_capacity(self.num_rows, width))
            self._publish()
        for name in new:
            column = self.resources.column_of(name)
            for on_row, amount in self.requested_elsewhere.take(name).items():
                self._requested[on_row, column] = amount
                self.resources.note_requested(name)
        for name, column in self.resources.release(held - names):
            if not self.resources.forget_requested(column):
                continue
            for on_row in np.flatnonzero(self._requested[:, column]).tolist():
                self.requested_elsewhere.add(name, on_row, int(self._requested[on_row, column]))
            self._requested[:, column] = 0

    def _copy_amounts(self, rows: int, columns: int) -> None:
        """Move the amounts to larger matrices."""
        resources, old = self.resources, self._allocatable
        self._requested = copied_amounts(
            self._requested, rows, columns, resources.requested_columns
        )
        common = resources.common_columns()
        self._allocatable = copied_amounts(old, rows, columns, common)
        if is_dense(*old.shape):
            return
        common_names = frozenset(resources.names[column] for column in common)
        for row, names in self._resource_names.items():
            for name in names - common_names:
                column = resources.column_of(name)
                if column < old.shape[1]:
                    self._allocatable[row, column] = old[row, column]

    def _change_usage(self, row: int, pod_class: PodClass, sign: int) -> None:
        requests = self.resources.requests(pod_class)
        for column, amount in requests.items:
            add_wrapping(self._requested_cells[column], row, sign * amount)
        for name, amount in requests.elsewhere:
            total = self.requested_elsewhere.add(name, row, sign * amount)
            if total != wrapped_int64(total):
                self.requested_elsewhere.add(name, row, wrapped_int64(total) - total)
        cpu_milli, memory_bytes = self._nonzero_cells
        add_wrapping(cpu_milli, row, sign * pod_class.nonzero_cpu_milli)
        add_wrapping(memory_bytes, row, sign * pod_class.nonzero_memory_bytes)
        self._num_pods_cells[row] += sign
        self.usage_changes.record(row)

    def _set_taints(self, row: int, taints: TaintSet) -> None:
        code = self.taint_sets.acquire(taints)
        old = int(self._taint_set[row])
        self._taint_set[row] = code
        _release(self.taint_sets, old)

    def _set_features(self, row: int, features: frozenset[str]) -> None:
        code = self.feature_sets.acquire(features)
        old = int(self._feature_set[row])
        self._feature_set[row] = code
        _release(self.feature_sets, old)

    def _grow(self, rows: int) -> None:
        self._free.extend(range(rows - 1, self.num_rows - 1, -1))
        self.names.extend([""] * (rows - self.num_rows))
        self.nodes.extend([None] * (rows - self.num_rows))
        self.num_rows = rows
        self.all_rows = read_only(np.arange(rows, dtype=np.int64))
        self.labels.grow(rows)
        self.images.grow(rows)
        self.host_ports.grow(rows)
        self.search_order.grow(rows)
        self._exists = extended(self._exists, rows)
        self._unschedulable = extended(self._unschedulable, rows)
        self._taint_set = extended(self._taint_set, rows)
        self._feature_set = extended(self._feature_set, rows)
        self._num_pods = extended(self._num_pods, rows)
        self._copy_amounts(rows, column_capacity(rows, len(self.resources)))
        self._nonzero_requested = extended(self._nonzero_requested, rows)
        self._publish()
        for observer in self.growth_observers:
            observer(rows)

    def _publish(self) -> None:
        self.exists = read_only(self._exists)
        self.unschedulable = read_only(self._unschedulable)
        self.taint_set = read_only(self._taint_set)
        self.feature_set = read_only(self._feature_set)
        self.num_pods = read_only(self._num_pods)
        width = len(self.resources)
        self.allocatable = read_only(self._allocatable[:, :width])
        self.requested = read_only(self._requested[:, :width])
        self.nonzero_requested = read_only(self._nonzero_requested)
        self._requested_cells = [column.data for column in self._requested.T[:width]]
        self._nonzero_cells = [column.data for column in self._nonzero_requested.T]
        self._num_pods_cells = self._num_pods.data
        self._amount_cells = (
            *(column.data for column in self._allocatable.T[:width]),
            *self._requested_cells,
            *self._nonzero_cells,
            self._num_pods_cells,
        )


def _release(sets: Interner[TaintSet] | Interner[frozenset[str]], code: int) -> None:
    """Release the set of a row; code 0, the empty set, is never released."""
    if code:
        sets.release(code)


def _without_time(taint: Taint) -> Taint:
    return Taint(taint.key, taint.value, taint.effect) if taint.time_added else taint


def _with_images(node: Node, images: tuple[ContainerImage, ...]) -> Node:
    if not images:
        return node
    status = msgspec.structs.replace(node.status, images=images)
    return msgspec.structs.replace(node, status=status)
