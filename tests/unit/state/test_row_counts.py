"""Counts per key and row, and changed copies of them."""

from __future__ import annotations

from stowage.state.row_counts import RowCounts


def test_a_changed_copy_has_the_counts_of_its_base_and_leaves_them_as_they_are() -> None:
    base = RowCounts[str]()
    base.add("a", 1, 2)
    base.add("b", 3, 1)
    copy = RowCounts(base)
    assert copy.add("a", 1, -2) == 0
    assert copy.add("c", 4, 1) == 1
    assert [dict(copy.at(key)) for key in "abcd"] == [{}, {3: 1}, {4: 1}, {}]
    assert copy.rows("b").tolist() == [3]
    assert [dict(base.at(key)) for key in "abc"] == [{1: 2}, {3: 1}, {}]


def test_a_key_without_counts_is_forgotten() -> None:
    counts = RowCounts[str]()
    counts.add("a", 1, 2)
    assert dict(counts.at("a")) == {1: 2}
    counts.add("a", 1, -2)
    assert list(counts) == []
    assert dict(counts.at("a")) == {}
