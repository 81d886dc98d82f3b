from __future__ import annotations

import numpy as np
import pytest

from stowage.engine.scheduling import TieBreaker
from stowage.engine.scheduling.node_scoring import select_host
from stowage.framework import ScoreResult


def _scores(rows: list[int], total: list[int]) -> ScoreResult:
    return ScoreResult(np.array(rows, dtype=np.int64), np.array(total, dtype=np.int64), lambda: ())


def test_the_node_with_the_highest_score_is_picked() -> None:
    def never(ties: int) -> int:
        raise AssertionError(f"asked about {ties} ties")

    assert select_host(_scores([3, 5, 8], [10, 30, 20]), TieBreaker(never)) == 5


@pytest.mark.parametrize(("choice", "want"), [(0, 3), (1, 8)])
def test_a_tie_is_broken_by_the_callers_choice(choice: int, want: int) -> None:
    scores = _scores([3, 5, 8], [30, 10, 30])
    ties = TieBreaker(lambda _: choice)
    assert select_host(scores, ties) == want
    assert (ties.sizes, ties.choices) == ([2], [choice])
