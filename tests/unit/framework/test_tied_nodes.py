"""Positions among tied nodes are found without a list of all."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stowage.framework.runtime import score_result
from stowage.framework.runtime.score_result import TiedNodes


@given(st.lists(st.booleans(), min_size=1, max_size=80).filter(any), st.integers(1, 80))
def test_positions_equal_those_of_a_list_of_all(is_tied: list[bool], count: int) -> None:
    with patch.object(score_result, "_BLOCK", 4):
        tied = TiedNodes(np.array(is_tied))
        expected = [position for position, flag in enumerate(is_tied) if flag]
        assert [tied.position(index) for index in range(len(tied))] == expected
        assert tied.first(count).tolist() == expected[:count]
        assert tied.all().tolist() == expected
