"""How many cores this process may use."""

from __future__ import annotations

import os
import sys


def usable_cores() -> int:
    """Number of the cores that this process may run on; all of them where the system can't say."""
    if sys.platform == "linux":
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return cores
