"""Settings of the garbage collector for a long-running scheduler.

Modules, pods and nodes live long and are not part of garbage cycles, so frequent collections cost
time and find nothing.
"""

from __future__ import annotations

import gc
import sys

#: Thresholds of `gc.set_threshold`; Python's defaults are 700, 10, 10. The second threshold bounds
#: how many objects one collection of the middle generation visits: 3 times 20,000. Since 3.14 each
#: collection visits a part of all old objects instead; a higher threshold makes that part smaller.
THRESHOLDS = (20_000, 3, 333) if sys.version_info < (3, 14) else (20_000, 20, 50)


def raise_collection_thresholds() -> None:
    """Collect rarely: the first lists create many objects and almost no garbage."""
    gc.set_threshold(*THRESHOLDS)


def freeze_tracked_objects() -> None:
    """Exclude the objects of the first lists from all later collections."""
    gc.freeze()
