"""Plugin PodGroupPodsCount: prefers the placement that takes most pods of the group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowage.framework import NoArgs, PlacedMembers, PluginTraits, Prospects
from stowage.framework.scores import MAX_NODE_SCORE
from stowage.framework.verdict import Int64Array
from stowage.state.snapshot import Snapshot


class PodGroupPodsCount:
    """Scores placements by the number of the group's pods, scheduled ones included."""

    name = "PodGroupPodsCount"
    traits = PluginTraits()

    def __init__(self, args: NoArgs) -> None:
        del args

    def score_placements(
        self, snapshot: Snapshot, placements: Sequence[PlacedMembers]
    ) -> Int64Array:
        """``int64[placements]``: 100 for the placement with most pods, in proportion for others."""
        del snapshot
        counts = np.array(
            [each.num_scheduled + len(each.placed) for each in placements], dtype=np.int64
        )
        return _scores(counts)

    def highest_scores(
        self, snapshot: Snapshot, prospects: Prospects, most: Int64Array
    ) -> Int64Array:
        """``int64[placements]``: the scores if each placement takes `most` members."""
        del snapshot
        return _scores(prospects.num_scheduled + most)


def _scores(counts: Int64Array) -> Int64Array:
    return counts * MAX_NODE_SCORE // max(int(counts.max()), 1)
