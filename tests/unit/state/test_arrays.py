"""Rows and their runs."""

from __future__ import annotations

from itertools import chain

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stowage.state import arrays
from stowage.state.arrays import Rows

# Half of the masks have long runs, so that few runs and many runs both occur.
masks = st.lists(st.tuples(st.booleans(), st.sampled_from((1, 1, 9))), max_size=150).map(
    lambda parts: list(chain.from_iterable([value] * length for value, length in parts))
)


@given(masks)
def test_rows_and_their_runs_are_those_of_the_mask(mask: list[bool]) -> None:
    rows = Rows.where(np.array(mask, dtype=np.bool_))
    expected = [row for row, is_true in enumerate(mask) if is_true]
    assert rows.numbers.tolist() == expected
    assert rows.numbers.dtype == np.int64
    starts = [row for row in expected if row == 0 or not mask[row - 1]]
    if rows.runs is None:
        assert len(starts) >= arrays.FEW_RUNS
    else:
        assert [run.start for run in rows.runs] == starts
        assert list(chain.from_iterable(range(run.start, run.stop) for run in rows.runs)) == (
            expected
        )


def test_many_rows_that_stand_alone_have_no_runs() -> None:
    alone = np.arange(4 * arrays.FEW_RUNS) % 2 == 0
    assert Rows.where(alone).runs is None
    assert Rows.where(alone[: arrays.FEW_RUNS]).runs is not None
