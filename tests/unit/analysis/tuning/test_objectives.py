"""What is better, what is on the front, and which trials are not worth finishing."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from stowage.analysis.tuning.objectives import (
    Scores,
    gain,
    is_hopeless,
    mean_gain,
    pareto_front,
    scores_of,
)
from tests.unit.experiments.experiments import make_result


def test_scores_are_means_over_workloads_and_seeds() -> None:
    results = [
        make_result(nodes_used=10.0, imbalance=1.0, failed=2.0),
        make_result(nodes_used=20.0, imbalance=2.0, failed=3.0),
    ]
    assert scores_of(["balance", "packing"], results) == Scores((1.5, 15.0), 2.5)


def test_a_gain_is_the_part_that_was_saved() -> None:
    assert (gain(75, 100), gain(120, 100), gain(0, 0), gain(1, 0)) == (0.25, -0.2, 0, -math.inf)
    assert mean_gain(Scores((75.0, 50.0), 0), Scores((100.0, 100.0), 0)) == 0.375


def test_a_trial_is_hopeless_if_it_is_worse_than_the_median_in_every_objective() -> None:
    others = [Scores((float(number), 5.0), 0) for number in range(9)]  # medians 4 and 5
    assert is_hopeless(Scores((4.1, 5.1), 0), others)
    assert not is_hopeless(Scores((4.1, 5.0), 0), others)
    assert not is_hopeless(Scores((4.0, 9.0), 0), others)
    assert not is_hopeless(Scores((9.0, 9.0), 0), others[:3])


def test_trials_that_leave_more_pods_without_a_node_do_not_count() -> None:
    assert pareto_front([Scores((1.0,), 3), Scores((2.0,), 1)], 1) == [1]
    assert pareto_front([Scores((1.0,), 3)], 1) == []


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_the_front_has_what_no_other_is_at_least_as_good_as(pairs: list[tuple[int, int]]) -> None:
    front = pareto_front([Scores((float(a), float(b)), 0) for a, b in pairs], 0)
    kept = [pairs[index] for index in front]
    assert len(set(kept)) == len(kept)
    for a, b in pairs:
        covered = [(c, d) for c, d in kept if c <= a and d <= b]
        assert covered
        assert ((a, b) in kept) == (covered == [(a, b)])
