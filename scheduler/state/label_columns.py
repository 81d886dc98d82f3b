"""Node labels as columns of codes, one per label key that somebody asked about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from cachetools import LRUCache

from scheduler.api.node import Node
from scheduler.api.selectors import Operator, Requirement
from scheduler.state.arrays import BoolArray, Int32Array, extended, read_only
from scheduler.state.interning import ABSENT, Interner

_MEMBERSHIP = (Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS)
_EXCLUSION = (Operator.NOT_IN, Operator.NOT_EQUALS)
_MAX_TABLES = 256


class LabelColumn:
    """The values of one label.

    Attributes:
        key: The label key.
        codes: ``int32[rows]``, the code of each row's value, `ABSENT` where it has none.
        cells: The memory of `codes`; reading one element is far faster this way.
        values: Code -> value; a code that no node uses any more is free (None) until reused.
    """

    __slots__ = ("_codes", "_tables", "cells", "codes", "key", "values")

    def __init__(self, key: str, num_rows: int) -> None:
        self.key = key
        self.values: Interner[str] = Interner()
        self._tables: LRUCache[tuple[str, tuple[str, ...]], tuple[int, BoolArray]] = LRUCache(
            _MAX_TABLES
        )
        self._codes: Int32Array = np.full(num_rows, ABSENT, dtype=np.int32)
        self.codes = read_only(self._codes)
        self.cells = self._codes.data

    @property
    def num_values(self) -> int:
        """Length of an array with one entry per value (free codes included)."""
        return len(self.values)

    def value(self, code: int) -> str | None:
        """The value that a code stands for; None for `ABSENT` and free codes."""
        return None if code < 0 else self.values.values[code]

    def set(self, row: int, value: str | None) -> tuple[int, int]:
        """Give a row a value, or take it away; returns the row's old and new code."""
        old = self.cells[row]
        new = ABSENT if value is None else self.values.acquire(value)
        self.cells[row] = new
        if old != ABSENT:
            self.values.release(old)
        return old, new

    def table(self, requirement: Requirement) -> BoolArray:
        """Which values meet a requirement; made anew only when values came or went.

        Returns:
            ``bool[num_values + 1]``. The last entry answers for rows without the label, so
            ``table[codes]`` is right for code -1 too.
        """
        key = (requirement.operator.value, requirement.values)
        known = self._tables.get(key)
        if known is not None and known[0] == self.values.version:
            return known[1]
        table = read_only(self._judge(requirement))
        self._tables[key] = (self.values.version, table)
        return table

    def grow(self, num_rows: int) -> None:
        """Make room for more rows."""
        self._codes = extended(self._codes, num_rows, ABSENT)
        self.codes = read_only(self._codes)
        self.cells = self._codes.data

    def _judge(self, requirement: Requirement) -> BoolArray:
        operator = requirement.operator
        table = np.full(self.num_values + 1, operator in _EXCLUSION, dtype=np.bool_)
        if operator in _MEMBERSHIP or operator in _EXCLUSION:
            for value in requirement.values:
                code = self.values.get(value)
                if code != ABSENT:
                    table[code] = operator in _MEMBERSHIP
        elif operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
            table[:-1] = operator is Operator.EXISTS
            table[-1] = operator is Operator.DOES_NOT_EXIST
        else:
            for code, known in enumerate(self.values.values):
                table[code] = requirement.matches_value(known)
        return table


LabelObserver: TypeAlias = Callable[[LabelColumn, int, int, int], None]
"""Told of (column, row, old code, new code) before the old code is free to be reused."""


class LabelColumns:
    """The columns of all label keys asked about so far, kept up to date.

    A column is built when its key is first asked for, if any node has the key at all: what pods
    ask about keys that do not exist costs no memory, and neither do keys nobody asks about.

    Args:
        nodes: ``row -> node``, shared with the owner; read when a column is built.
        num_rows: How many rows there are.
    """

    __slots__ = ("_columns", "_key_counts", "_nodes", "_num_rows", "observers")

    def __init__(self, nodes: Sequence[Node | None], num_rows: int) -> None:
        self._nodes = nodes
        self._num_rows = num_rows
        self._columns: dict[str, LabelColumn] = {}
        self._key_counts: Counter[str] = Counter()
        self.observers: list[LabelObserver] = []

    def column(self, key: str) -> LabelColumn:
        """The column of a label; one that no node has yields an empty column."""
        column = self._columns.get(key)
        if column is None:
            column = LabelColumn(key, self._num_rows)
            if key in self._key_counts:
                self._fill(column)
                self._columns[key] = column
        return column

    def built(self) -> Mapping[str, LabelColumn]:
        """The columns that exist, by key."""
        return self._columns

    def update(self, row: int, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Note that the labels of a row changed."""
        for key in old.keys() - new.keys():
            self._key_counts[key] -= 1
            if not self._key_counts[key]:
                del self._key_counts[key]
            self._set(key, row, None)
        for key, value in new.items():
            before = old.get(key)
            if before is None:
                self._key_counts[key] += 1
            if before != value:
                self._set(key, row, value)

    def grow(self, num_rows: int) -> None:
        """Make room for more rows."""
        self._num_rows = num_rows
        for column in self._columns.values():
            column.grow(num_rows)

    def _set(self, key: str, row: int, value: str | None) -> None:
        column = self._columns.get(key)
        if column is None:
            return
        old, new = column.set(row, value)
        for observer in self.observers:
            observer(column, row, old, new)

    def _fill(self, column: LabelColumn) -> None:
        for row, node in enumerate(self._nodes):
            if node is not None:
                value = node.metadata.labels.get(column.key)
                if value is not None:
                    column.set(row, value)
