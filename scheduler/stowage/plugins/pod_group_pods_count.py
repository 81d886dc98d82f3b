"""Plugin PodGroupPodsCount: prefers the placement that takes most pods of the group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowage.framework import NoArgs, PlacedMembers, PluginTraits
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
        scores: Int64Array = counts * MAX_NODE_SCORE // max(int(counts.max()), 1)
        return scores
