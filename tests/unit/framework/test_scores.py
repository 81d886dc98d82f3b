from __future__ import annotations

import numpy as np
import pytest

from stowage.framework.scores import (
    any_out_of_range,
    default_normalize_score,
    out_of_range,
    uniform_score,
)


@pytest.mark.parametrize(
    ("scores", "reverse", "want"),
    [
        ([1, 2, 3, 4], False, [25, 50, 75, 100]),
        ([1, 2, 3, 4], True, [75, 50, 25, 0]),
        ([1000, 10, 20, 30], False, [100, 1, 2, 3]),
        ([1000, 10, 20, 30], True, [0, 99, 98, 97]),
        ([1, 1, 1], False, [100, 100, 100]),
        ([0, 0], False, [0, 0]),
        ([0, 0], True, [100, 100]),
        ([], False, []),
    ],
)
def test_scores_are_scaled_to_a_maximum_of_100(
    scores: list[int], reverse: bool, want: list[int]
) -> None:
    array = np.array(scores, dtype=np.int64)
    assert default_normalize_score(array, reverse=reverse).tolist() == want


def test_scores_below_zero_and_above_a_hundred_are_out_of_range() -> None:
    scores = np.array([-1, 0, 100, 101], dtype=np.int64)
    assert out_of_range(scores).tolist() == [True, False, False, True]
    assert any_out_of_range(scores)
    assert not any_out_of_range(scores[1:3])
    assert not any_out_of_range(scores[:0])


@pytest.mark.parametrize(("scores", "want"), [([], 0), ([7], 7), ([7, 7, 7], 7), ([7, 7, 8], None)])
def test_a_score_is_uniform_if_all_nodes_share_it(scores: list[int], want: int | None) -> None:
    assert uniform_score(np.array(scores, dtype=np.int64)) == want
