"""Labels as columns of codes, one column per label key that was requested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from stowage.api.interruptible import Interruptible, finish
from stowage.api.values.selectors import Operator, Requirement, Selector, parse_int64
from stowage.state.arrays import BoolArray, Int32Array, Int64Array, extended, read_only
from stowage.state.interning import ABSENT, Interner

_MEMBERSHIP = (Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS)
_EXCLUSION = (Operator.NOT_IN, Operator.NOT_EQUALS)
_MAX_TABLES = 256

ROWS_PER_STEP = 10_000
"""Rows of a new column that are filled in one step; each takes some microseconds at most."""

_ValueT = TypeVar("_ValueT", bound=np.generic)


class LabelColumn:
    """The values of one label.

    Attributes:
        key: The label key.
        codes: ``int32[rows]``, the code of each row's value, `ABSENT` without the label.
        cells: The memory of `codes`, in which reading one element is much faster.
        values: Code -> value; a code without rows is free (None) until it is reused.
        num_absent: Number of rows without the label.
    """

    __slots__ = (
        "_codes",
        "_in_use",
        "_integers",
        "_num_out_of_order",
        "_tables",
        "cells",
        "codes",
        "key",
        "num_absent",
        "values",
    )

    def __init__(self, key: str, num_rows: int) -> None:
        self.key = key
        self.values: Interner[str] = Interner()
        self._integers: tuple[int, Int64Array, Int64Array] | None = None
        self._tables: LRUCache[tuple[str, tuple[str, ...]], tuple[int, BoolArray]] = LRUCache(
            _MAX_TABLES
        )
        self._codes: Int32Array = np.full(num_rows, ABSENT, dtype=np.int32)
        self.codes = read_only(self._codes)
        self.cells = self._codes.data
        self.num_absent = num_rows
        self._num_out_of_order = 0
        self._in_use: tuple[int, NDArray[np.intp]] = (-1, np.empty(0, dtype=np.intp))

    @property
    def num_values(self) -> int:
        """Number of codes, including free ones."""
        return len(self.values)

    @property
    def is_by_row(self) -> bool:
        """Whether the code of each row below `num_values` is the row, and no other row has any."""
        num_holes = self.num_absent - max(0, len(self._codes) - self.num_values)
        return not (self._num_out_of_order or num_holes)

    def has_any_of(self, requirement: Requirement) -> bool:
        """Whether a row may have a value that the requirement names.

        If not, each row meets the requirement as one without the label does.
        """
        if requirement.operator not in _MEMBERSHIP and requirement.operator not in _EXCLUSION:
            return self.num_values > 0
        code_of = self.values.get
        # A loop takes half the time of any(); a pod may have thousands of requirements.
        for value in requirement.values:  # noqa: SIM110
            if code_of(value) != ABSENT:
                return True
        return False

    def codes_in_use(self) -> NDArray[np.intp]:
        """The codes that some row has, ascending; not to be written to."""
        version, codes = self._in_use
        if version != self.values.version:
            codes = np.delete(np.arange(self.num_values, dtype=np.intp), self.values.free)
            self._in_use = (self.values.version, codes)
        return codes

    def value(self, code: int) -> str | None:
        """The value of a code; None for `ABSENT` and free codes."""
        return None if code < 0 else self.values.values[code]

    def set(self, row: int, value: str | None) -> tuple[int, int]:
        """Set or remove the value of a row; returns the old and the new code."""
        old = self.cells[row]
        new = ABSENT if value is None else self.values.acquire(value)
        self.cells[row] = new
        if old != ABSENT:
            self.values.release(old)
        self.num_absent += (new == ABSENT) - (old == ABSENT)
        self._num_out_of_order += (new not in (row, ABSENT)) - (old not in (row, ABSENT))
        return old, new

    def fill(self, first: int, values: Sequence[str | None]) -> None:
        """Set the values of consecutive rows of a new column; None for those without the label."""
        rows = slice(first, first + len(values))
        codes = self._codes[rows]
        codes[:] = self.values.acquire_all(values)
        is_absent = codes == ABSENT
        self.num_absent -= len(values) - int(np.count_nonzero(is_absent))
        in_order = codes == np.arange(first, first + len(values), dtype=np.int32)
        self._num_out_of_order += int(np.count_nonzero(~(in_order | is_absent)))

    def entries(self, table: NDArray[_ValueT], rows: slice | Int64Array) -> NDArray[_ValueT]:
        """The entry of a table for each of some rows, ``table[codes[rows]]``, not to be written to.

        The code of a host name mostly is its row. The entries then stand in the order of the rows,
        and copying them takes a fraction of the time of looking them up.

        Args:
            table: ``[num_values + 1]``; the last entry is for rows without the label.
            rows: A slice of consecutive rows, or row numbers.
        """
        num_values = self.num_values
        if not self.is_by_row:
            return table.take(self.codes[rows], mode="wrap")
        # Rows from num_values on have no label, so the last entry is theirs.
        if not isinstance(rows, slice):
            return table.take(rows, mode="clip")
        start, stop, _ = rows.indices(len(self._codes))
        entries = table[start : min(stop, num_values)]
        rest = stop - max(start, num_values)
        return entries if rest <= 0 else np.append(entries, np.full(rest, table[-1]))

    def table(self, requirement: Requirement) -> BoolArray:
        """Which values meet a requirement; recomputed only when values are added or removed.

        Returns:
            ``bool[num_values + 1]``. The last entry is for rows without the label, so
            ``table[codes]`` is right for code -1 too.
        """
        key = (requirement.operator.value, requirement.values)
        known = self._tables.get(key)
        if known is not None and known[0] == self.values.version:
            return known[1]
        table = read_only(self._evaluate(requirement))
        self._tables[key] = (self.values.version, table)
        return table

    def table_of_all(self, requirements: Sequence[Requirement]) -> BoolArray:
        """Which values meet all of some requirements, of which there is at least one.

        Returns:
            ``bool[num_values + 1]``, as `table`.
        """
        if len(requirements) == 1:
            return self.table(requirements[0])
        met: BoolArray = np.ones(self.num_values + 1, dtype=np.bool_)
        for requirement in _tightest(requirements):
            if requirement.operator in _EXCLUSION:
                # A pod may exclude thousands of values, one by one.
                for value in requirement.values:
                    code = self.values.get(value)
                    if code != ABSENT:
                        met[code] = False
            elif self.has_any_of(requirement):
                met &= self.table(requirement)
            elif not requirement.matches_value(None):
                met[:] = False
                break
        return met

    def integers(self) -> tuple[Int64Array, Int64Array]:
        """The codes whose values are integers, and these; each value is parsed once."""
        if self._integers is None or self._integers[0] != self.values.version:
            read = [None if each is None else parse_int64(each) for each in self.values.values]
            codes = [code for code, number in enumerate(read) if number is not None]
            numbers = [number for number in read if number is not None]
            self._integers = (
                self.values.version,
                np.array(codes, dtype=np.int64),
                np.array(numbers, dtype=np.int64),
            )
        return self._integers[1:]

    def grow(self, num_rows: int) -> None:
        """Extend the arrays to `num_rows`."""
        self.num_absent += num_rows - len(self._codes)
        self._codes = extended(self._codes, num_rows, ABSENT)
        self.codes = read_only(self._codes)
        self.cells = self._codes.data

    def _evaluate(self, requirement: Requirement) -> BoolArray:
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
            self._compare(requirement, table)
        return table

    def _compare(self, requirement: Requirement, table: BoolArray) -> None:
        """Evaluate Gt and Lt."""
        bound = parse_int64(requirement.values[0])
        if bound is None:
            return
        codes, integers = self.integers()
        is_greater = requirement.operator is Operator.GT
        table[codes] = integers > bound if is_greater else integers < bound


def _tightest(requirements: Iterable[Requirement]) -> list[Requirement]:
    """The requirements, without bounds of Gt and Lt that follow from others."""
    bounds: dict[Operator, tuple[int, Requirement]] = {}
    others = []
    for each in requirements:
        operator = each.operator
        if operator not in (Operator.GT, Operator.LT):
            others.append(each)
            continue
        bound = parse_int64(each.values[0])
        if bound is None:
            others.append(each)  # nothing meets it
            continue
        tightest = bounds.get(operator)
        if tightest is None or (
            bound > tightest[0] if operator is Operator.GT else bound < tightest[0]
        ):
            bounds[operator] = (bound, each)
    return [*others, *(each for _, each in bounds.values())]


LabelObserver: TypeAlias = Callable[[LabelColumn, int, int, int], None]
"""Called with (column, row, old code, new code) before the old code can be reused."""


class LabelColumns:
    """The columns of all requested label keys, kept up to date.

    A column is built when its key is first requested, if any row has the key. So keys that no row
    has, and keys that are never requested, cost no memory.

    Args:
        labels_of: The labels of a row, empty for a free row; read when a column is built.
        num_rows: The number of rows.
        keeps_unused: Whether a column stays when the last row loses its key.
    """

    __slots__ = (
        "_absent",
        "_columns",
        "_keeps_unused",
        "_key_counts",
        "_labels_of",
        "_num_rows",
        "observers",
    )

    def __init__(
        self, labels_of: Callable[[int], Mapping[str, str]], num_rows: int, *, keeps_unused: bool
    ) -> None:
        self._labels_of = labels_of
        self._num_rows = num_rows
        self._keeps_unused = keeps_unused
        self._columns: dict[str, LabelColumn] = {}
        self._absent: LabelColumn | None = None
        self._key_counts: Counter[str] = Counter()
        self.observers: list[LabelObserver] = []

    def column(self, key: str) -> LabelColumn:
        """The column of a label key; empty if no row has the key."""
        column = self._columns.get(key)
        if column is None:
            if key not in self._key_counts:
                return self._empty_column()
            column = finish(self._building_steps(key))
        return column

    def building_steps(self, keys: Iterable[str]) -> Interruptible[None]:
        """Build in steps the columns of keys that nothing has asked for yet.

        No label may change before the last step.
        """
        for key in keys:
            if key not in self._columns and key in self._key_counts:
                yield from self._building_steps(key)
                yield

    def mask(self, selector: Selector) -> BoolArray:
        """``bool[rows]``: where a selector matches; a free row has no labels."""
        mask: BoolArray = np.full(self._num_rows, not selector.matches_nothing, dtype=np.bool_)
        for requirement in selector.requirements if not selector.matches_nothing else ():
            column = self.column(requirement.key)
            if column.has_any_of(requirement):
                mask &= column.table(requirement)[column.codes]
            elif not requirement.matches_value(None):
                mask[:] = False
        return mask

    def built(self) -> Mapping[str, LabelColumn]:
        """The columns that are built, by key."""
        return self._columns

    def update(self, row: int, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Update the labels of a row."""
        for key in old.keys() - new.keys():
            self._key_counts[key] -= 1
            self._set(key, row, None)
            if not self._key_counts[key]:
                del self._key_counts[key]
                if not self._keeps_unused:
                    self._columns.pop(key, None)
        for key, value in new.items():
            before = old.get(key)
            if before is None:
                self._key_counts[key] += 1
            if before != value and self._columns:
                self._set(key, row, value)

    def grow(self, num_rows: int) -> None:
        """Extend the arrays to `num_rows`."""
        self._num_rows = num_rows
        for column in self._columns.values():
            column.grow(num_rows)

    def _empty_column(self) -> LabelColumn:
        """The shared column of all keys that no row has; a pod may name thousands of them."""
        if self._absent is None or len(self._absent.codes) != self._num_rows:
            self._absent = LabelColumn("", self._num_rows)
        return self._absent

    def _set(self, key: str, row: int, value: str | None) -> None:
        column = self._columns.get(key)
        if column is None:
            return
        old, new = column.set(row, value)
        for observer in self.observers:
            observer(column, row, old, new)

    def _building_steps(self, key: str) -> Interruptible[LabelColumn]:
        column, labels_of = LabelColumn(key, self._num_rows), self._labels_of
        for first in range(0, self._num_rows, ROWS_PER_STEP):
            if first > 0:
                yield
            rows = range(first, min(first + ROWS_PER_STEP, self._num_rows))
            column.fill(first, [labels_of(row).get(key) for row in rows])
        self._columns[key] = column
        return column
