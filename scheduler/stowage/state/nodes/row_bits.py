"""Sets of node rows as integers, one bit a row: combining two takes nanoseconds, not microseconds.

A pod may have thousands of node selector terms with several requirements each. An array over all
nodes for every requirement would take far longer than the event loop may wait.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from stowage.api.values.node_affinity import NODE_NAME_FIELD, NodeTerm
from stowage.api.values.selectors import Operator, Requirement, parse_int64
from stowage.state.arrays import BoolArray, Int64Array
from stowage.state.interning import ABSENT
from stowage.state.nodes.label_columns import LabelColumn
from stowage.state.snapshot import Snapshot

_POSITIVE = (Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS)
_NEGATIVE = (Operator.NOT_IN, Operator.NOT_EQUALS)
#: Up to so many rows are set one by one.
_FEW_ROWS = 8
#: The set of a value is kept if at least one in so many rows has the value.
_KEPT_SHARE = 64


class TermBits:
    """The rows that node selector terms match, for many terms in one snapshot.

    Args:
        snapshot: The nodes.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._num_rows = snapshot.num_rows
        self._all = (1 << snapshot.num_rows) - 1
        self._by_key: dict[str, _LabelBits] = {}

    def of(self, term: NodeTerm) -> int:
        """The rows that a term matches; none if the term is invalid.

        Rows without a node have no labels and no name, so that negative requirements hold.
        """
        if term.error:
            return 0
        bits = self._all
        for requirement in term.labels:
            bits &= self._of_label(requirement)
        for requirement in term.fields:
            bits &= self._of_field(requirement)
        return bits

    def rows(self, bits: int) -> BoolArray:
        """``bool[rows]``."""
        packed = np.frombuffer(bits.to_bytes(-(-self._num_rows // 8), "little"), dtype=np.uint8)
        flags = np.unpackbits(packed, bitorder="little", count=self._num_rows)
        return flags.view(np.bool_)

    def _of_label(self, requirement: Requirement) -> int:
        label = self._by_key.get(requirement.key)
        if label is None:
            column = self._snapshot.label_column(requirement.key)
            label = self._by_key[requirement.key] = _LabelBits(column, self._num_rows)
        operator = requirement.operator
        if operator in _POSITIVE:
            return label.any_of(requirement.values)
        if operator in _NEGATIVE:
            return self._all ^ label.any_of(requirement.values)
        if operator is Operator.EXISTS:
            return label.present()
        if operator is Operator.DOES_NOT_EXIST:
            return self._all ^ label.present()
        return label.compared(requirement)

    def _of_field(self, requirement: Requirement) -> int:
        if requirement.key != NODE_NAME_FIELD:
            return self._all if requirement.matches_value("") else 0
        named = 0
        for name in requirement.values:
            row = self._snapshot.row_of(name)
            if row is not None:
                named |= 1 << row
        return named if requirement.operator in _POSITIVE else self._all ^ named


class SumsOfWeights:
    """Sums of weights per row: terms of one weight are counted bit by bit, all rows at once."""

    def __init__(self, terms: TermBits) -> None:
        self._terms = terms
        self._digits: dict[int, list[int]] = {}

    def add(self, bits: int, weight: int) -> None:
        """Add a weight to some rows."""
        digits = self._digits.setdefault(weight, [])
        for place, digit in enumerate(digits):
            if not bits:
                return
            digits[place], bits = digit ^ bits, digit & bits
        if bits:
            digits.append(bits)

    def total(self, num_rows: int) -> Int64Array:
        """``int64[rows]``."""
        total: Int64Array = np.zeros(num_rows, dtype=np.int64)
        for weight, digits in self._digits.items():
            for place, digit in enumerate(digits):
                if digit:
                    total += self._terms.rows(digit) * (weight << place)
        return total


class _LabelBits:
    """The rows that have values of one label."""

    def __init__(self, column: LabelColumn, num_rows: int) -> None:
        self._column = column
        self._is_by_row = column.is_by_row
        self._num_rows = num_rows
        self._present: int | None = None
        self._kept: dict[int, int] = {}
        self._by_code: tuple[Int64Array, Int64Array] | None = None
        self._numbers: list[int] | None = None
        self._compared: dict[tuple[Operator, int], int] = {}

    def any_of(self, values: tuple[str, ...]) -> int:
        """The rows that have one of the values."""
        bits, code_of, is_by_row = 0, self._column.values.get, self._is_by_row
        for value in values:
            code = code_of(value)
            if code != ABSENT:
                bits |= 1 << code if is_by_row else self._of_code(code)
        return bits

    def present(self) -> int:
        """The rows that have the label."""
        if self._present is None:
            self._present = _packed(self._column.codes >= 0)
        return self._present

    def compared(self, requirement: Requirement) -> int:
        """The rows whose value is a number above or below a bound."""
        bound = parse_int64(requirement.values[0])
        if bound is None:
            return 0
        if self._numbers is None:
            parsed = [parse_int64(each) for each in self._column.values if each]
            self._numbers = sorted({each for each in parsed if each is not None})
        # All bounds between the same two numbers have the same rows.
        is_greater = requirement.operator is Operator.GT
        place = (bisect_right if is_greater else bisect_left)(self._numbers, bound)
        key = (requirement.operator, place)
        bits = self._compared.get(key)
        if bits is None:
            table = self._column.table(requirement)
            bits = self._compared[key] = _packed(table[self._column.codes])
        return bits

    def _of_code(self, code: int) -> int:
        bits = self._kept.get(code)
        if bits is not None:
            return bits
        rows = self._rows_of(code)
        if len(rows) <= _FEW_ROWS:
            return sum(1 << row for row in rows.tolist())
        mask = np.zeros(self._num_rows, dtype=np.bool_)
        mask[rows] = True
        bits = _packed(mask)
        if len(rows) * _KEPT_SHARE >= self._num_rows:
            self._kept[code] = bits
        return bits

    def _rows_of(self, code: int) -> Int64Array:
        if self._by_code is None:
            codes = self._column.codes
            rows = codes.argsort(kind="stable")
            starts = np.searchsorted(codes, np.arange(self._column.num_values + 1), sorter=rows)
            self._by_code = rows, starts
        rows, starts = self._by_code
        return rows[starts[code] : starts[code + 1]]


def _packed(mask: BoolArray) -> int:
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")
