"""Measures the speed of the machine, so that figures of two machines can be compared."""

from __future__ import annotations

import time
from statistics import median

import msgspec
import numpy as np

_ROUNDS = 15
_DOCUMENT = msgspec.json.encode(
    {f"key-{index}": {"name": f"pod-{index}", "values": list(range(8))} for index in range(200)}
)


def calibration_ms() -> float:
    """CPU milliseconds of a fixed piece of work like the scheduler's: the median of several rounds.

    Objects and dictionaries in plain Python, JSON encoded and decoded, and columns of 5,000 rows.
    """
    return round(1000 * median(_timed_round() for _ in range(_ROUNDS)), 4)


def _timed_round() -> float:
    started = time.process_time()
    _work()
    return time.process_time() - started


def _work() -> int:
    counts: dict[str, int] = {}
    for index in range(10_000):
        key = f"zone-{index % 97}"
        counts[key] = counts.get(key, 0) + index
    for _ in range(10):
        msgspec.json.encode(msgspec.json.decode(_DOCUMENT))
    column = np.arange(5_000, dtype=np.int64)
    total = 0
    for turn in range(100):
        total += int(np.where(column % 7 == turn % 7, column, 0).sum())
    return total + len(counts)
