"""NodeRank: breaks ties by a number that each node has in a label."""

from collections.abc import Iterator

import numpy as np

from stowage.framework.authoring import (
    ChangedRows,
    ConfigError,
    CycleState,
    Int64Array,
    NodeView,
    PluginArgs,
    PodInfo,
    Snapshot,
)

_LAST = np.iinfo(np.int64).max


class NodeRank:
    """Gives 100 to the node with the lowest rank, and 0 to all others.

    For ``tieBreaking.scorePlugins`` of a profile: of the nodes with the highest total, the first in
    the order of the ranks is taken. A node without a rank comes last.
    """

    name = "NodeRank"

    class Args(PluginArgs):
        """The label that has the rank, a whole number."""

        label: str = "gpushare.example.com/rank"

        def validate(self) -> Iterator[ConfigError]:
            """Yield an error for each invalid value."""
            if not self.label:
                yield ConfigError("label", self.label, "the key of a label")

    def __init__(self, args: Args) -> None:
        self.label = args.label
        self._changed = ChangedRows()
        self._ranks: Int64Array = np.empty(0, dtype=np.int64)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """100 for the lowest rank."""
        ranks = nodes.take(self._all(nodes.snapshot))
        scores = np.zeros(len(nodes), dtype=np.int64)
        scores[ranks.argmin()] = 100
        return scores

    def _all(self, snapshot: Snapshot) -> Int64Array:
        """``int64[rows]``: the ranks; they are read again where a node changed."""
        if snapshot.is_what_if:
            return np.array([self._rank(snapshot, row) for row in range(snapshot.num_rows)])
        rows = self._changed.since_last_call(snapshot)
        if len(self._ranks) != snapshot.num_rows:
            self._ranks = np.full(snapshot.num_rows, _LAST, dtype=np.int64)
        for row in rows.tolist():
            self._ranks[row] = self._rank(snapshot, row)
        return self._ranks

    def _rank(self, snapshot: Snapshot, row: int) -> int:
        node = snapshot.node(row)
        text = "" if node is None else node.metadata.labels.get(self.label, "")
        return int(text) if text.isdecimal() else int(_LAST)
