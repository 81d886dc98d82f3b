"""The pods of a row are put in order once after they change, and their slots grow with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np
import pytest

from stowage.state import PodInfo
from stowage.state.nodes.resource_index import ResourceIndex
from stowage.state.pods import ranked_pods
from stowage.state.pods.placed_pods import PlacedPods
from stowage.state.pods.pod_info import PodClasses, make_pod_info
from stowage.state.pods.ranked_pods import RankedPods
from tests.support.builders import make_pod

CLASSES = PodClasses()


class _Noted(PlacedPods):
    """Counts how often the pods of each row are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: Counter[int] = Counter()

    def on_row(self, row: int) -> Collection[PodInfo]:
        self.read[row] += 1
        return super().on_row(row)


def _put(placed: PlacedPods, name: str, row: int, priority: int = 0) -> None:
    placed.put(make_pod_info(make_pod(name, priority=priority), CLASSES), row)


def test_each_row_that_changed_is_put_in_order_once() -> None:
    placed = _Noted()
    for row in range(300):
        _put(placed, f"p{row}", row)
    ranked, rows = RankedPods(placed, ResourceIndex()), np.arange(300)
    ranked.of(rows, 300)
    assert placed.read == dict.fromkeys(range(300), 1)
    _put(placed, "q", 7)
    ranked.of(rows, 300)
    assert placed.read == {**dict.fromkeys(range(300), 1), 7: 2}


def test_rows_that_come_later_find_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranked_pods, "_SPARE_SLOTS", 1)
    placed = PlacedPods()
    ranked = RankedPods(placed, ResourceIndex())
    for num_rows in (1, 2, 5):
        for row in range(num_rows):
            _put(placed, f"p{row}-of-{num_rows}", row, priority=num_rows)
        found = ranked.of(np.arange(num_rows), num_rows)
        names = [[pod.name for pod in found.pods_at(row)] for row in range(num_rows)]
        assert names == [
            [f"p{row}-of-{came}" for came in (5, 2, 1) if row < came <= num_rows]
            for row in range(num_rows)
        ]
