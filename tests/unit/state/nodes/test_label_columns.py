"""A label is a column of codes, and a requirement is a table over these codes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.values.selectors import Operator, Requirement
from stowage.state import NodeView
from stowage.state.cache import ClusterCache
from stowage.state.interning import ABSENT
from stowage.state.nodes.label_columns import LabelColumn
from stowage.state.nodes.node_columns import NodeColumns
from tests.support.builders import ZONE, make_node


@pytest.fixture
def columns() -> NodeColumns:
    columns = NodeColumns()
    for index, zone in enumerate(["a", "b", "a", None]):
        columns.set_node(make_node(f"n{index}", zone=zone))
    return columns


def codes(columns: NodeColumns, key: str) -> list[int]:
    return list(columns.labels.column(key).cells[:4])


def test_equal_values_share_a_code_and_absence_is_minus_one(columns: NodeColumns) -> None:
    first, second, third, absent = codes(columns, ZONE)
    assert first == third != second
    assert absent == -1
    assert columns.labels.column(ZONE).value(second) == "b"


def test_a_column_is_updated_with_its_nodes(columns: NodeColumns) -> None:
    column = columns.labels.column(ZONE)
    columns.set_node(make_node("n1", zone="c"))
    columns.set_node(make_node("n3", zone="a"))
    assert [column.value(code) for code in codes(columns, ZONE)] == ["a", "c", "a", "a"]
    assert column.num_values == len(set(codes(columns, ZONE))) + 1  # the code of b is free


@pytest.mark.parametrize("num_values", [0, 1, 2])
def test_the_codes_in_use_are_right_whenever_they_are_asked_for_first(num_values: int) -> None:
    column = LabelColumn("key", 4)
    for row in range(num_values):
        column.set(row, f"v{row}")
    assert column.codes_in_use().tolist() == list(range(num_values))


def test_the_codes_in_use_follow_the_values() -> None:
    column = LabelColumn("key", 4)
    for row, value, want in ((0, "a", [0]), (1, "b", [0, 1]), (0, None, [1])):
        column.set(row, value)
        assert column.codes_in_use().tolist() == want


def test_of_several_requirements_of_a_label_all_must_be_met(columns: NodeColumns) -> None:
    column = columns.labels.column(ZONE)
    either = Requirement(ZONE, Operator.IN, ("a", "b"))
    not_a = Requirement(ZONE, Operator.NOT_IN, ("a",))
    both = column.table_of_all([either, not_a])
    assert both[codes(columns, ZONE)].tolist() == [False, True, False, False]
    assert column.table_of_all([not_a])[codes(columns, ZONE)].tolist() == [False, True, False, True]


def test_a_label_that_no_node_has_gives_an_empty_column_that_is_not_kept(
    columns: NodeColumns,
) -> None:
    assert columns.labels.column("absent").num_values == 0
    assert codes(columns, "absent") == [-1] * 4
    assert "absent" not in columns.labels.built()


def test_a_label_that_nothing_asks_for_has_no_column(columns: NodeColumns) -> None:
    labels = {f"label-{number}": "x" for number in range(1_000)}
    columns.set_node(make_node("n0", labels=labels))
    columns.labels.column("label-7")
    assert list(columns.labels.built()) == ["label-7"]


@pytest.mark.parametrize(
    ("operator", "values", "want"),
    [
        (Operator.IN, ("a", "z"), [True, False, True, False]),
        (Operator.NOT_IN, ("a",), [False, True, False, True]),
        (Operator.EXISTS, (), [True, True, True, False]),
        (Operator.DOES_NOT_EXIST, (), [False, False, False, True]),
        (Operator.GT, ("1",), [False, False, False, False]),
    ],
)
def test_requirements_are_evaluated_per_value(
    columns: NodeColumns, operator: Operator, values: tuple[str, ...], want: list[bool]
) -> None:
    column = columns.labels.column(ZONE)
    table = column.table(Requirement(ZONE, operator, values))
    assert table[column.codes][:4].tolist() == want


def test_a_table_is_kept_until_a_value_is_added_or_removed(columns: NodeColumns) -> None:
    column = columns.labels.column(ZONE)
    requirement = Requirement(ZONE, Operator.IN, ("c",))
    table = column.table(requirement)
    columns.set_node(make_node("n2", zone="b"))
    assert column.table(requirement) is table
    columns.set_node(make_node("n0", zone="c"))
    assert column.table(requirement)[column.codes][:4].tolist() == [True, False, False, False]


def test_numbers_are_compared_as_numbers() -> None:
    cache = ClusterCache()
    for index, size in enumerate(["5", "10", "nine"]):
        cache.update_node(make_node(f"n{index}", labels={"size": size}))
    nodes: NodeView = cache.snapshot().view(slice(0, 3))
    column = cache.snapshot().label_column("size")
    table = column.table(Requirement("size", Operator.GT, ("7",)))
    assert table[nodes.label_codes("size")].tolist() == [False, True, False]


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 8),
    st.lists(st.tuples(st.integers(0, 11), st.sampled_from([None, "a", "b", "row"]))),
    st.integers(0, 4),
)
def test_entries_of_rows_are_those_of_their_codes(
    num_named: int, changes: list[tuple[int, str | None]], grown: int
) -> None:
    """Whether codes and rows are in the same order, as for host names, or not."""
    column = LabelColumn("key", 12)
    for row in range(num_named):
        column.set(row, f"n{row}")
    for row, value in changes:
        column.set(row, f"n{row}" if value == "row" else value)
    column.grow(12 + grown)
    table = np.arange(column.num_values + 1) * 10
    expected = table[column.codes]
    some = np.flatnonzero(column.codes >= 0)
    for rows in (slice(None), slice(2, 7), slice(9, 16), some, np.arange(12 + grown)[::-1]):
        assert column.entries(table, rows).tolist() == expected[rows].tolist()
    assert column.num_absent == int((column.codes < 0).sum())


def test_a_column_knows_whether_the_code_of_each_row_is_the_row() -> None:
    rand, num_by_row = random.Random(3), 0
    for _ in range(100):
        column = LabelColumn("name", 4)
        for row in (0, 1, 2, *(rand.randrange(4) for _ in range(12))):
            value = rand.choice([None, f"n{row}", f"n{row}", f"n{row + 1}"])
            column.set(row, value)
            by_row = [row if row < column.num_values else ABSENT for row in range(4)]
            assert column.is_by_row == (column.codes.tolist() == by_row)
            num_by_row += column.is_by_row
    assert 150 < num_by_row < 1350


@given(st.lists(st.sampled_from([None, "a", "b", "c"]), max_size=8), st.booleans())
def test_a_column_that_is_filled_equals_one_that_is_set_row_by_row(
    values: list[str | None], differ: bool
) -> None:
    values = [None if each is None else f"{each}-{row * differ}" for row, each in enumerate(values)]
    filled, by_row = LabelColumn("key", len(values)), LabelColumn("key", len(values))
    middle = len(values) // 2
    filled.fill(0, values[:middle])
    filled.fill(middle, values[middle:])
    for row, value in enumerate(values):
        by_row.set(row, value)
    assert filled.codes.tolist() == by_row.codes.tolist()
    assert filled.values.values == by_row.values.values
    assert (filled.num_absent, filled.is_by_row) == (by_row.num_absent, by_row.is_by_row)
    for row in range(len(values)):
        assert filled.set(row, None) == by_row.set(row, None)
    assert filled.values.values == by_row.values.values
