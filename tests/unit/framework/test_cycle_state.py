"""What plugins leave in the state of a cycle, and what its copies have of it."""

from __future__ import annotations

from itertools import count

from stowage.framework import CycleState


def test_a_fork_has_what_was_written_and_what_filter_skips_but_shares_nothing() -> None:
    state = CycleState()
    state.write(["written"])
    state.skip_filter.add("A")
    state.skip_score.add("B")
    twin = state.fork()
    assert twin.read(list) == ["written"]
    assert (twin.skip_filter, twin.skip_score) == ({"A"}, set())
    twin.write(7)
    twin.skip_filter.add("C")
    assert state.get(int) is None
    assert state.skip_filter == {"A"}


def test_steps_last_from_the_end_of_the_one_before() -> None:
    seconds = count(10, 3)
    state = CycleState(timer=lambda: float(next(seconds)))
    state.mark("Filter")
    state.mark("Score")
    assert state.durations(started=8.0) == (("Filter", 2.0), ("Score", 3.0))


def test_what_pre_filter_left_is_taken_over_as_it_was() -> None:
    first = CycleState()
    first.write(["written"])
    first.skip_filter.add("A")
    first.uncached_scores = frozenset({"B"})
    prepared = first.prepared(was_scored=False)
    first.write(["later"])
    first.skip_filter.add("later")
    second = CycleState()
    second.take_over(prepared)
    assert second.read(list) == ["written"]
    assert second.skip_filter == {"A"}
    assert second.uncached_scores == frozenset({"B"})
    assert prepared.skip_score is None


def test_a_fresh_state_allows_no_group_and_activates_no_pod() -> None:
    state = CycleState()
    assert state.group_to_allow is None
    assert state.take_pods_to_activate() == ()
    state.allow_group("default/g", "Gang")
    assert state.group_to_allow == ("default/g", "Gang")


def test_a_blank_state_has_the_same_clocks_and_limits_but_nothing_that_was_written() -> None:
    state = CycleState(
        timer=lambda: 3.0, wall_clock=lambda: 5.0, start_limit=lambda limit_s: lambda: limit_s < 1.0
    )
    state.write(["written"])
    state.skip_filter.add("A")
    blank = state.blank()
    assert (blank.timer(), blank.wall_clock()) == (3.0, 5.0)
    assert (blank.start_limit(0.5)(), blank.start_limit(2.0)()) == (True, False)
    assert blank.get(list) is None
    assert blank.skip_filter == set()
