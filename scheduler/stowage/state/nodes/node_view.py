"""Some or all nodes of a snapshot, as Filter and Score plugins are given them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import NDArray

from stowage.state.arrays import BoolArray, Int32Array, Int64Array
from stowage.state.pods.pod_class import HostPort

if TYPE_CHECKING:
    from stowage.state.snapshot import Snapshot
    from stowage.state.what_if.rows import RowChanges

ArrayT = TypeVar("ArrayT", bound=NDArray[Any])


class NodeView:
    """The columns of a snapshot limited to some rows; entry i of each array is node i of the view.

    A view over a slice, or over consecutive rows, shares the snapshot's memory, any other copies
    what is asked for. Rows without a node may be among them: see `exists`.

    Attributes:
        snapshot: What the nodes are part of.
        index: The rows, as a slice or as row numbers.
        changes: What is different on each node itself, where every node is shown as it would be
            if it alone changed; None where the nodes are as the snapshot has them.
    """

    __slots__ = ("_allocatable", "_requested", "_where", "changes", "index", "snapshot")

    def __init__(self, snapshot: Snapshot, index: slice | Int64Array) -> None:
        self.snapshot = snapshot
        self.index = index
        self._where = index
        self.changes: RowChanges | None = None
        # Gathering rows costs as much as the arithmetic on them, and several plugins ask.
        self._allocatable: Int64Array | None = None
        self._requested: Int64Array | None = None

    @classmethod
    def of_ascending(cls, snapshot: Snapshot, rows: Int64Array) -> NodeView:
        """A view over ascending rows: where they are consecutive nothing has to be gathered."""
        view = cls(snapshot, rows)
        if len(rows) and int(rows[-1]) - int(rows[0]) + 1 == len(rows):
            view._where = slice(int(rows[0]), int(rows[-1]) + 1)
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
        """Node names; empty where a row has no node."""
        names = self.snapshot.node_names
        if isinstance(self.index, slice):
            return list(names[self.index])
        return [names[row] for row in self.index.tolist()]

    @property
    def exists(self) -> BoolArray:
        """``bool[nodes]``: whether there is a node object."""
        return self.snapshot.exists[self._where]

    @property
    def allocatable(self) -> Int64Array:
        """``int64[nodes, resources]``."""
        if self._allocatable is None:
            self._allocatable = self.snapshot.allocatable[self._where]
            self._allocatable.flags.writeable = False
        return self._allocatable

    @property
    def requested(self) -> Int64Array:
        """``int64[nodes, resources]``: what the pods on each node request."""
        if self._requested is None:
            self._requested = self.snapshot.requested[self._where]
            self._requested.flags.writeable = False
        return self._requested

    @property
    def nonzero_requested(self) -> Int64Array:
        """``int64[nodes, 2]``: cpu milli and memory bytes, with defaults for what is not named."""
        return self.snapshot.nonzero_requested[self._where]

    @property
    def num_pods(self) -> Int64Array:
        """``int64[nodes]``."""
        return self.snapshot.num_pods[self._where]

    @property
    def unschedulable(self) -> BoolArray:
        """``bool[nodes]``: ``spec.unschedulable``."""
        return self.snapshot.unschedulable[self._where]

    @property
    def taint_set(self) -> Int32Array:
        """``int32[nodes]``: codes in ``snapshot.taint_sets``."""
        return self.snapshot.taint_set[self._where]

    @property
    def feature_set(self) -> Int32Array:
        """``int32[nodes]``: codes in ``snapshot.feature_sets``."""
        return self.snapshot.feature_set[self._where]

    def label_codes(self, key: str) -> Int32Array:
        """``int32[nodes]``: codes in ``snapshot.label_column(key)``, -1 without the label."""
        return self.snapshot.label_codes(key)[self._where]

    def ports_in_conflict(self, ports: Iterable[HostPort]) -> BoolArray:
        """``bool[nodes]``: where one of these host ports collides with one in use."""
        return self.snapshot.ports_in_conflict(ports, self._where)

    def take(self, array: ArrayT) -> ArrayT:
        """The entries of an array over all rows that belong to these nodes; not to be written."""
        return array[self._where]  # type: ignore[return-value]

    def copied(self, array: ArrayT) -> ArrayT:
        """The same, to be written."""
        entries = array[self._where]
        return entries.copy() if entries.base is not None else entries  # type: ignore[return-value]
