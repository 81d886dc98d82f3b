from __future__ import annotations

import numpy as np
import pytest
from stowage.engine.scheduling.ranking import pick_node
from stowage.framework import ScoreResult


def _scores(rows: list[int], total: list[int]) -> ScoreResult:
    return ScoreResult(np.array(rows, dtype=np.int64), np.array(total, dtype=np.int64), lambda: ())


def test_the_node_with_the_highest_total_is_picked_without_asking() -> None:
    def never(ties: int) -> int:
        raise AssertionError(f"asked about {ties} ties")

    assert pick_node(_scores([3, 5, 8], [10, 30, 20]), never) == 5


@pytest.mark.parametrize(("choice", "want"), [(0, 3), (1, 8)])
def test_a_tie_is_broken_by_the_callers_choice(choice: int, want: int) -> None:
    scores = _scores([3, 5, 8], [30, 10, 30])
    asked: list[int] = []

    def choose(ties: int) -> int:
        asked.append(ties)
        return choice

    assert pick_node(scores, choose) == want
    assert asked == [2]
