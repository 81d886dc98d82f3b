"""The garbage collector, told what it need not look at.

What a scheduler keeps, keeps: modules, pods and nodes are in no cycle that dies. Looking through
them again and again costs time and finds nothing.
"""

from __future__ import annotations

import gc

#: Allocations between collections of the youngest generation, and how many of those between
#: collections of the older ones; Python's own are 700, 10, 10.
THRESHOLDS = (20_000, 20, 50)


def raise_collection_thresholds() -> None:
    """Expect the first lists: many objects, next to no garbage."""
    gc.set_threshold(*THRESHOLDS)


def freeze_tracked_objects() -> None:
    """Never look again at what the first lists brought."""
    gc.freeze()
