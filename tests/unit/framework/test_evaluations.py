"""Evaluations of plugins, derived from counts per run."""

from __future__ import annotations

from stowage.framework.runtime.evaluations import FILTER, PRE_FILTER, Evaluations


def test_every_plugin_that_is_not_skipped_is_counted() -> None:
    evaluations = Evaluations({PRE_FILTER: ["A", "B"], FILTER: ["A", "B", "C"]})
    evaluations.add(PRE_FILTER, {"B", "of another point"})
    evaluations.add(FILTER, {"B"}, times=5)
    evaluations.add(FILTER, set(), times=2)
    assert evaluations.totals() == {
        ("A", PRE_FILTER): 1,
        ("A", FILTER): 7,
        ("B", FILTER): 2,
        ("C", FILTER): 7,
    }


def test_plugins_after_the_one_that_ended_the_run_are_not_counted() -> None:
    evaluations = Evaluations({PRE_FILTER: ["A", "B", "C"]})
    evaluations.add(PRE_FILTER, {"A"}, stopped_at="B")
    assert evaluations.totals() == {("B", PRE_FILTER): 1}


def test_counts_of_runs_that_take_turns_add_up() -> None:
    evaluations = Evaluations({FILTER: ["A", "B"]})
    for _ in range(3):
        evaluations.add(FILTER, {"B"}, times=5)
        evaluations.add(FILTER, set(), times=2)
    assert evaluations.totals() == {("A", FILTER): 21, ("B", FILTER): 6}
