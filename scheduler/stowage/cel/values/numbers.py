"""Integers of 64 bits."""

from __future__ import annotations

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
UINT_MAX = 2**64 - 1


class Uint(int):
    """An unsigned integer."""

    __slots__ = ()
