"""A number per node that is computed from the node object; only changed nodes are asked again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stowage.api.objects.node import Node
from stowage.state.arrays import Int64Array
from stowage.state.change_log import ChangeLog

if TYPE_CHECKING:
    from stowage.state.snapshot import Snapshot


class NodeValues:
    """The values of a function of the node object, by row.

    A snapshot of another cluster resets it.

    Args:
        value: Node -> number.
    """

    __slots__ = ("_generation", "_log", "_value", "_values")

    def __init__(self, value: Callable[[Node], int]) -> None:
        self._value = value
        self._log: ChangeLog | None = None
        self._generation = 0
        self._values: Int64Array = np.zeros(0, dtype=np.int64)

    def by_row(self, snapshot: Snapshot) -> Int64Array:
        """``int64[rows]``: 0 for a row without a node."""
        log = snapshot.node_changes
        same_cluster = log is self._log and len(self._values) == snapshot.num_rows
        if same_cluster and log.generation == self._generation:
            return self._values
        changed = log.since(self._generation) if same_cluster else None
        if changed is None:
            self._values = np.zeros(snapshot.num_rows, dtype=np.int64)
            changed = snapshot.all_rows
        for row in changed.tolist():
            node = snapshot.node(row)
            self._values[row] = 0 if node is None else self._value(node)
        self._log, self._generation = log, log.generation
        return self._values
