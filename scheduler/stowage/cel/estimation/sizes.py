"""Sizes of values that an expression can have, as ranges.

Sizes are those of ``size()``: characters, bytes, elements; 1 for scalars. Sums and products that do
not fit into 64 bits are cut to `MOST`.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from stowage.cel.signatures.types import (
    BOOL,
    DOUBLE,
    DURATION,
    INT,
    TIMESTAMP,
    UINT,
    Type,
    optional_content,
)
from stowage.cel.syntax.tree import ListLiteral, Literal, MapLiteral, Node

MOST = 2**64 - 1
"""The greatest size and cost; greater ones are cut to it."""

_SCALARS = frozenset((BOOL, DOUBLE, DURATION, INT, TIMESTAMP, UINT))


class Size(NamedTuple):
    """The least and the greatest size that a value can have."""

    least: int
    most: int

    def plus(self, other: Size) -> Size:
        """The size of both together."""
        return Size(bounded(self.least + other.least), bounded(self.most + other.most))

    def times(self, other: Size) -> Size:
        """The size of as many parts of the other size."""
        return Size(bounded(self.least * other.least), bounded(self.most * other.most))

    def or_(self, other: Size) -> Size:
        """The size of one of the two."""
        return Size(min(self.least, other.least), max(self.most, other.most))

    def cost(self, factor: float) -> int:
        """The worst cost of reading such a value, with a factor a unit."""
        return scaled(self.most, factor)


UNKNOWN = Size(0, MOST)


def exactly(size: int) -> Size:
    """A size that is known."""
    return Size(size, size)


def bounded(value: int) -> int:
    """The value, at most `MOST`."""
    return min(value, MOST)


def scaled(value: int, factor: float) -> int:
    """The product, rounded up in floating point numbers as cel-go does, at most `MOST`."""
    return bounded(ceil(float(value) * factor))


def size_of_literal(node: Node) -> Size | None:
    """The size of a value that the expression spells out; None for other nodes."""
    match node:
        case Literal(value=str() | bytes() as text):
            return exactly(len(text))
        case Literal():
            return exactly(1)
        case ListLiteral(elements=elements):
            return exactly(len(elements))
        case MapLiteral(entries=entries):
            return exactly(len(entries))
    return None


def size_of_type(what: Type) -> Size | None:
    """The size of values of a type; None if they have different sizes."""
    content, _ = optional_content(what)
    return exactly(1) if content in _SCALARS else None
