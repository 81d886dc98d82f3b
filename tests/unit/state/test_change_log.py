"""Readers get the rows that changed since the generation they remember."""

from __future__ import annotations

from stowage.state.change_log import ChangeLog


def test_each_changed_row_is_returned_once_in_ascending_order() -> None:
    log = ChangeLog()
    log.record(1)
    seen = log.generation
    for row in (7, 3, 7):
        log.record(row)
    since = log.since(seen)
    assert since is not None
    assert since.tolist() == [3, 7]


def test_a_reader_that_is_up_to_date_gets_no_rows() -> None:
    log = ChangeLog()
    log.record(1)
    since = log.since(log.generation)
    assert since is not None
    assert since.size == 0


def test_a_reader_that_is_too_far_behind_gets_none_instead_of_rows() -> None:
    log = ChangeLog(limit=4)
    for row in range(8):
        log.record(row)
    assert log.generation == 8
    assert log.since(0) is None
    recent = log.since(4)
    assert recent is not None
    assert recent.tolist() == [4, 5, 6, 7]


def test_the_log_does_not_grow_without_bound() -> None:
    log = ChangeLog(limit=4)
    for row in range(1000):
        log.record(row)
    assert log.generation == 1000
    assert log.since(1000 - 8) is None


def test_the_same_generation_returns_the_same_array_until_a_change() -> None:
    log = ChangeLog()
    log.record(3)
    answer = log.since(0)
    assert log.since(0) is answer
    log.record(1)
    again = log.since(0)
    assert again is not None
    assert again.tolist() == [1, 3]


def test_changes_are_counted_as_recorded_until_some_are_dropped() -> None:
    log = ChangeLog()
    log.record(1)
    seen = log.generation
    assert log.num_since(seen) == 0
    log.record(7)
    log.record(7)
    assert log.num_since(seen) == 2
    log.forget()
    assert log.num_since(seen) is None
