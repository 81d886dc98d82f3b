"""What devices publish as columns over the codes of their signatures.

Selectors, match constraints and capacity requests are decided once for all signatures that agree in
what they read. A column of an attribute is made when it is first asked for and kept up to date from
then on: most attributes, such as serial numbers, are never read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from stowage.api.interruptible import Interruptible, finish
from stowage.state.arrays import Int32Array, Int64Array, extended, grown_capacity
from stowage.state.devices.device_info import AttributeValue, Signature
from stowage.state.interning import ABSENT, Interner

_MAX_COLUMNS = 128
#: A question reads at most so many attributes by columns, two columns each: all stay in the cache.
MAX_READS = _MAX_COLUMNS // 4
#: Up to so many keys, each has a place in a table; from there on keys are sorted.
_MAX_TABLE = 4_000_000
_NO_TEXT = -1

SIGNATURES_PER_STEP = 10_000
"""Signatures whose values are put into a new column in one step; one takes a microsecond."""


class Read(Protocol):
    """An attribute that is read, see `stowage.cel.AttributeRead`."""

    @property
    def domain(self) -> str:
        """Its domain."""

    @property
    def name(self) -> str:
        """Its name in the domain."""

    @property
    def compared(self) -> frozenset[str] | None:
        """The only texts that count besides its length; None if its value counts."""


class Groups(NamedTuple):
    """Signatures that agree.

    Attributes:
        members: ``int64[]``: the number of the group of each signature.
        firsts: ``int64[groups]``: the code of one signature of each group.
    """

    members: Int64Array
    firsts: Int64Array


class Published(NamedTuple):
    """What columns hold of a signature.

    Attributes:
        base: `Signature.base`; None for a free code.
        driver: Its driver; None for a free code.
        attributes: Name -> value and length (-1 unless it is a string), of those with a column.
    """

    base: bytes | None
    driver: str | None
    attributes: dict[str, tuple[AttributeValue, int]]


class PublishedColumns:
    """Columns over the codes of signatures.

    Args:
        signatures: The signatures.
    """

    def __init__(self, signatures: Interner[Signature]) -> None:
        self._signatures = signatures
        self._bases: Interner[bytes] = Interner()
        self._drivers: Interner[str] = Interner()
        self._values: Interner[AttributeValue] = Interner()
        self._lengths: Int32Array = np.zeros(0, dtype=np.int32)
        self._base: Int32Array = np.zeros(0, dtype=np.int32)
        self._driver: Int32Array = np.zeros(0, dtype=np.int32)
        # The least recently asked for comes first.
        self._columns: dict[str, Int32Array] = {}

    def add(self, code: int) -> None:
        """Store what a new signature publishes."""
        signature = self._signatures.values[code]
        assert signature is not None  # noqa: S101 - the code was acquired
        if code >= len(self._base):
            self._grow(grown_capacity(len(self._base), code + 1))
        self._base[code] = self._bases.acquire(signature.base)
        self._driver[code] = self._drivers.acquire(signature.driver)
        for name, column in self._columns.items():
            column[code] = self._acquired(signature.attributes.get(name))

    def remove(self, code: int) -> None:
        """Forget what the signature of a freed code published."""
        self._bases.release(int(self._base[code]))
        self._drivers.release(int(self._driver[code]))
        self._base[code] = self._driver[code] = ABSENT
        for column in self._columns.values():
            self._release(int(column[code]), 1)
            column[code] = ABSENT

    def stored(self, code: int) -> Published:
        """What the columns hold of a code."""
        attributes = {}
        for name, column in self._columns.items():
            number = int(column[code])
            value = None if number == ABSENT else self._values.values[number]
            if value is not None:
                attributes[name] = value, int(self._lengths[number])
        base, driver = int(self._base[code]), int(self._driver[code])
        return Published(
            None if base == ABSENT else self._bases.values[base],
            None if driver == ABSENT else self._drivers.values[driver],
            attributes,
        )

    def expected(self, code: int) -> Published:
        """What the columns should hold of a code."""
        signature = self._signatures.values[code]
        if signature is None:
            return Published(None, None, {})
        attributes = {
            name: (value, _length(value))
            for name in self._columns
            if (value := signature.attributes.get(name)) is not None
        }
        return Published(signature.base, signature.driver, attributes)

    def codes(self) -> Int64Array:
        """``int64[]``: the codes of signatures that devices have, ascending."""
        found: Int64Array = (self._base[: len(self._signatures)] != ABSENT).nonzero()[0]
        return found

    def build(self, names: Iterable[str]) -> Iterator[None]:
        """Make the columns that nothing has asked for yet, in steps.

        Args:
            names: Those of `names_read` or `names_of`.
        """
        for name in names:
            if name not in self._columns:
                self._keep(name, (yield from self._making_steps(name)))
                yield

    def names_of(self, attribute: str) -> list[str]:
        """The names of the columns from which `attribute` reads."""
        domain, _, identifier = attribute.partition("/")
        is_of_driver = bool(identifier) and self._drivers.get(domain) != ABSENT
        return [attribute, identifier] if is_of_driver else [attribute]

    def group(self, among: Int64Array, reads: Sequence[Read] = ()) -> Groups:
        """Group signatures by what they publish.

        Those of a group agree in driver, capacities, versions and sharing, and in the attributes
        that are read, as far as these are.

        Args:
            among: ``int64[]``: codes of signatures.
            reads: The attributes, at most `MAX_READS`.
        """
        members, num_groups = dense(self._base[among].astype(np.int64), len(self._bases))
        for read in reads:
            for column in map(self._column, names_read(read)):
                values, width = self._as_read(column[among], read.compared)
                values, width = dense(values, width)
                members, num_groups = dense(members * width + values, num_groups * width)
        firsts = np.empty(num_groups, dtype=np.int64)
        firsts[members[::-1]] = among[::-1]
        return Groups(members, firsts)

    def attribute(self, name: str) -> Int32Array:
        """``int32[signatures]``: code of the value of an attribute; `ABSENT` where it is missing.

        Args:
            name: Its fully qualified name, see `Signature.attribute`.
        """
        whole, *own = map(self._column, self.names_of(name))
        if not own:
            return whole
        is_own = self._driver[: len(whole)] == self._drivers.get(name.partition("/")[0])
        found: Int32Array = np.where((whole == ABSENT) & is_own, own[0], whole)
        return found

    @property
    def num_values(self) -> int:
        """The bound of the codes of values."""
        return len(self._values)

    def code_of(self, value: AttributeValue) -> int:
        """The code of a value, or `ABSENT`."""
        return self._values.get(value)

    def _as_read(
        self, codes: Int32Array, compared: frozenset[str] | None
    ) -> tuple[Int64Array, int]:
        """Codes of values as far as they are read, from 0, and their bound."""
        num_values = len(self._values)
        if compared is None or not num_values:
            return codes.astype(np.int64) + 1, num_values + 1
        lengths = self._lengths[:num_values].astype(np.int64)
        offset = int(lengths.max()) + 2
        table = np.where(lengths == _NO_TEXT, offset + np.arange(num_values), lengths + 1)
        for text in compared:
            code = self._values.get(("string", text))
            if code != ABSENT:
                table[code] = offset + code
        return np.where(codes == ABSENT, 0, table[codes]), offset + num_values

    def _column(self, name: str) -> Int32Array:
        known = self._columns.pop(name, None)
        if known is None:
            known = finish(self._making_steps(name))
        self._keep(name, known)
        return known[: len(self._signatures)]

    def _keep(self, name: str, column: Int32Array) -> None:
        """Keep a column as the latest that was asked for."""
        if len(self._columns) == _MAX_COLUMNS:
            oldest = self._columns.pop(next(iter(self._columns)))
            held, holders = np.unique(oldest, return_counts=True)
            for code, number in zip(held.tolist(), holders.tolist(), strict=True):
                self._release(code, number)
        self._columns[name] = column

    def _making_steps(self, name: str) -> Interruptible[Int32Array]:
        """The column of an attribute; nothing may change before the last step."""
        column = np.full(len(self._base), ABSENT, dtype=np.int32)
        # The one loop over all signatures, once for each name.
        for first in range(0, len(self._signatures), SIGNATURES_PER_STEP):
            if first > 0:
                yield
            part = slice(first, first + SIGNATURES_PER_STEP)
            signatures = self._signatures.values[part]
            codes = self._values.acquire_all(
                None if each is None else each.attributes.get(name) for each in signatures
            )
            column[first : first + len(codes)] = codes
            self._note_lengths({*codes} - {ABSENT})
        return column

    def _note_lengths(self, codes: Collection[int]) -> None:
        if not codes:
            return
        if len(self._values) > len(self._lengths):
            capacity = grown_capacity(len(self._lengths), len(self._values))
            self._lengths = extended(self._lengths, capacity)
        values = self._values.values
        for code in codes:
            value = values[code]
            self._lengths[code] = _NO_TEXT if value is None else _length(value)

    def _acquired(self, value: AttributeValue | None) -> int:
        if value is None:
            return ABSENT
        version = self._values.version
        code = self._values.acquire(value)
        if self._values.version != version:
            self._note_lengths((code,))
        return code

    def _release(self, code: int, holders: int) -> None:
        if code != ABSENT:
            self._values.release(code, holders)

    def _grow(self, length: int) -> None:
        self._base = extended(self._base, length, ABSENT)
        self._driver = extended(self._driver, length, ABSENT)
        for name, column in self._columns.items():
            self._columns[name] = extended(column, length, ABSENT)


def names_read(read: Read) -> list[str]:
    """The names by which an attribute may be published.

    A name without a domain is in that of the driver. Drivers are told apart elsewhere.
    """
    names = [f"{read.domain}/{read.name}"]
    if "/" not in read.name:
        names.append(read.name)
    return names


def _length(value: AttributeValue) -> int:
    kind, content = value
    return len(str(content)) if kind == "string" else _NO_TEXT


def dense(keys: Int64Array, width: int) -> tuple[Int64Array, int]:
    """Keys from 0 to ``width - 1`` numbered anew without gaps, and how many differ.

    Examples:
        >>> dense(np.array([7, 0, 7]), 8)
        (array([1, 0, 1]), 2)
    """
    if width > _MAX_TABLE:
        found, numbers = np.unique(keys, return_inverse=True)
        return numbers.astype(np.int64), len(found)
    present = np.zeros(width, dtype=np.bool_)
    present[keys] = True
    numbers = np.cumsum(present, dtype=np.int64) - 1
    return numbers[keys], int(np.count_nonzero(present))
