"""Tells a plugin with columns of its own which rows of them to compute again."""

from __future__ import annotations

from stowage.framework.verdict import Int64Array
from stowage.state.change_log import ChangeLog
from stowage.state.snapshot import Snapshot


class ChangedRows:
    """The rows that have changed from one call to the next.

    A plugin that keeps arrays over the rows of the cluster asks at the beginning of PreFilter, and
    computes these rows again. A what-if has no place in such arrays: see ``Snapshot.is_what_if``.
    """

    __slots__ = ("_node_generation", "_nodes", "_num_rows", "_usage", "_usage_generation")

    def __init__(self) -> None:
        self._nodes: ChangeLog | None = None
        self._usage: ChangeLog | None = None
        self._node_generation = 0
        self._usage_generation = 0
        self._num_rows = -1

    def since_last_call(self, snapshot: Snapshot) -> Int64Array:
        """The rows whose node or pods changed; all rows if their number or the cluster did.

        Raises:
            ValueError: `snapshot` is a what-if.
        """
        if snapshot.is_what_if:
            raise ValueError("a what-if has no changes, only differences from the cluster")
        nodes, usage = snapshot.node_changes, snapshot.usage_changes
        rows = None
        if nodes is self._nodes and usage is self._usage and snapshot.num_rows == self._num_rows:
            of_nodes = nodes.since(self._node_generation)
            of_usage = usage.since(self._usage_generation)
            if of_nodes is not None and of_usage is not None:
                rows = snapshot.union(of_nodes, of_usage) if len(of_nodes) else of_usage
        self._nodes, self._node_generation = nodes, nodes.generation
        self._usage, self._usage_generation = usage, usage.generation
        self._num_rows = snapshot.num_rows
        return snapshot.all_rows if rows is None else rows
