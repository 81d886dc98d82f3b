"""Settings of the garbage collector for a long-running scheduler.

Modules, pods and nodes live long and are not part of garbage cycles, so frequent collections cost
time and find nothing.
"""

from __future__ import annotations

import gc

#: Thresholds of `gc.set_threshold`; Python's defaults are 700, 10, 10. A collection of the second
#: generation visits up to 20,000 * 3 objects, which takes some 0.03 s.
THRESHOLDS = (20_000, 3, 333)


def raise_collection_thresholds() -> None:
    """Collect rarely: the first lists create many objects and almost no garbage."""
    gc.set_threshold(*THRESHOLDS)


def freeze_tracked_objects() -> None:
    """Exclude the objects of the first lists from all later collections."""
    gc.freeze()
