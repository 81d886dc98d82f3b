"""Samples show the state at their times, in a bounded number of points."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from stowage.analysis.simulation.samples import POINTS, Samples

CHANGES = st.lists(st.floats(0.001, 5_000), max_size=30).map(sorted)


@given(CHANGES, st.sampled_from([0.0, 1.0, 100.0, 10_000.0]))
def test_samples_agree_with_the_state_at_each_time(changes: list[float], expected_s: float) -> None:
    """The state is the number of changes so far."""
    state = {"changes": 0.0}
    samples = Samples(expected_s, lambda: dict(state))
    for at_s in changes:
        samples.advance(at_s)
        state["changes"] += 1
    ended = changes[-1] if changes else 0.0
    samples.finish(ended)
    assert samples.columns() == {"changes": [bisect_right(changes, at) for at in samples.times]}
    assert samples.times == sorted(set(samples.times))
    assert (samples.times[0], samples.times[-1]) == (0.0, ended)
    assert len(samples.times) <= 2 * POINTS


def test_points_stay_equally_far_apart_when_the_experiment_takes_longer() -> None:
    samples = Samples(10.0, lambda: {"value": 1.0})
    samples.advance(95.0)
    samples.finish(100.0)
    gaps = {round(after - before, 6) for before, after in pairwise(samples.times)}
    assert len(gaps) == 1
    assert POINTS <= len(samples.times) <= 2 * POINTS


def test_a_quantity_that_comes_later_was_0_before() -> None:
    values = {"old": 1.0}
    samples = Samples(2.0 * POINTS, lambda: dict(values))
    samples.advance(3.0)
    values["new"] = 5.0
    samples.finish(4.0)
    assert samples.columns() == {"old": [1.0, 1.0, 1.0], "new": [0.0, 0.0, 5.0]}
