"""The order of values (``traits.Comparer`` of cel-go)."""

from __future__ import annotations

import math
from typing import Any

from stowage.cel.errors import CelRuntimeError, no_such_overload
from stowage.cel.values.numbers import Uint
from stowage.cel.values.times import Duration, Timestamp

_NUMBERS = (int, Uint, float)
_SELF_ORDERED = (str, bytes, bool, Duration, Timestamp)


def compare(left: Any, right: Any) -> int:
    """Return -1, 0 or 1; numbers of different types are ordered by their amounts.

    Raises:
        CelRuntimeError: the values have no order.
    """
    kind, other = type(left), type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        return _compare_numbers(left, right)
    if kind is not other or kind not in _SELF_ORDERED:
        raise no_such_overload()
    return _sign(left, right)


def is_comparable(value: Any) -> bool:
    """Whether values of this type have an order."""
    return type(value) in _NUMBERS or type(value) in _SELF_ORDERED


def _compare_numbers(left: Any, right: Any) -> int:
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
        if math.isnan(left) or math.isnan(right):
            raise CelRuntimeError("NaN values cannot be ordered")
    return _sign(left, right)


def _sign(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)
