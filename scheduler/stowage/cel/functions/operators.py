"""Operators and ``size``: arithmetic that checks its range, comparisons, membership.

``&&``, ``||``, ``?:``, ``==``, ``!=``, ``[]`` and ``[?]`` are declared here; the planner
evaluates them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from stowage.cel.errors import CelRuntimeError
from stowage.cel.functions import costs
from stowage.cel.signatures.functions import Overload, overload, overloads
from stowage.cel.values.equality import Work, contains_value
from stowage.cel.values.numbers import INT_MAX, INT_MIN, UINT_MAX, Uint
from stowage.cel.values.ordering import compare
from stowage.cel.values.times import duration_of, timestamp_of


def in_int(value: int) -> int:
    """Return `value` if it fits a signed integer of 64 bits."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise CelRuntimeError("integer overflow")


def in_uint(value: int) -> Uint:
    """Return `value` if it fits an unsigned integer of 64 bits."""
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise CelRuntimeError("unsigned integer overflow")


def _int_quotient(left: int, right: int) -> int:
    if right == 0:
        raise CelRuntimeError("division by zero")
    quotient = abs(left) // abs(right)
    return in_int(quotient if (left < 0) is (right < 0) else -quotient)


def _int_remainder(left: int, right: int) -> int:
    if right == 0:
        raise CelRuntimeError("modulus by zero")
    if (left, right) == (INT_MIN, -1):
        raise CelRuntimeError("integer overflow")
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


def _uint_quotient(left: int, right: int) -> Uint:
    if right == 0:
        raise CelRuntimeError("division by zero")
    return Uint(int(left) // int(right))


def _uint_remainder(left: int, right: int) -> Uint:
    if right == 0:
        raise CelRuntimeError("modulus by zero")
    return Uint(int(left) % int(right))


def _double_quotient(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def _of_ints(operation: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def checked(left: int, right: int) -> int:
        value = operation(left, right)
        if INT_MIN <= value <= INT_MAX:
            return value
        raise CelRuntimeError("integer overflow")

    return checked


def _of_uints(operation: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda left, right: in_uint(operation(int(left), int(right)))


def _comparisons(name: str, ordered: Callable[[Any, Any], bool]) -> list[Overload]:
    """A comparison by an operator of Python; doubles may be NaN, which has no order."""

    def of_doubles(left: Any, right: Any) -> bool:
        return ordered(compare(left, right), 0)

    scalars = ("bool", "int", "uint", "double", "timestamp", "duration")
    numbers = ("int", "uint", "double")
    mixed = [(a, b) for a in numbers for b in numbers if a != b]
    pairs = [*((each, each) for each in scalars), *mixed]
    return [
        *(
            overload(f"{name}({a}, {b}) -> bool", of_doubles if "double" in (a, b) else ordered)
            for a, b in pairs
        ),
        *(
            overload(f"{name}({each}, {each}) -> bool", ordered, costs.smaller_traversal)
            for each in ("string", "bytes")
        ),
    ]


def _add_lists(work: Work, left: list[Any], right: list[Any]) -> list[Any]:
    work.charge_work((len(left) + len(right)) // 10)
    return left + right


FUNCTIONS: list[Overload] = [
    overload("_&&_(bool, bool) -> bool"),
    overload("_||_(bool, bool) -> bool"),
    overload("_?_:_(bool, A, A) -> A"),
    overload("!_(bool) -> bool", operator.not_),
    overload("@not_strictly_false(bool) -> bool"),
    overload("_==_(A, A) -> bool"),
    overload("_!=_(A, A) -> bool"),
    overload("_[_](list(A), int) -> A"),
    overload("_[_](map(A, B), A) -> B"),
    overload("_[_](optional_type(list(A)), int) -> optional_type(A)"),
    overload("_[_](optional_type(map(A, B)), A) -> optional_type(B)"),
    overload("_[?_](list(A), int) -> optional_type(A)"),
    overload("_[?_](optional_type(list(A)), int) -> optional_type(A)"),
    overload("_[?_](map(A, B), A) -> optional_type(B)"),
    overload("_[?_](optional_type(map(A, B)), A) -> optional_type(B)"),
    overload("_+_(bytes, bytes) -> bytes", operator.add, costs.both_traversals),
    overload("_+_(double, double) -> double", operator.add),
    overload("_+_(duration, duration) -> duration", lambda a, b: duration_of(a.nanos + b.nanos)),
    overload("_+_(duration, timestamp) -> timestamp", lambda a, b: timestamp_of(a.nanos + b.nanos)),
    overload("_+_(timestamp, duration) -> timestamp", lambda a, b: timestamp_of(a.nanos + b.nanos)),
    overload("_+_(int, int) -> int", _of_ints(operator.add)),
    overload("_+_(list(A), list(A)) -> list(A)", _add_lists, needs_frame=True),
    overload("_+_(string, string) -> string", operator.add, costs.both_traversals),
    overload("_+_(uint, uint) -> uint", _of_uints(operator.add)),
    overload("_-_(double, double) -> double", operator.sub),
    overload("_-_(duration, duration) -> duration", lambda a, b: duration_of(a.nanos - b.nanos)),
    overload("_-_(int, int) -> int", _of_ints(operator.sub)),
    overload("_-_(timestamp, duration) -> timestamp", lambda a, b: timestamp_of(a.nanos - b.nanos)),
    overload("_-_(timestamp, timestamp) -> duration", lambda a, b: duration_of(a.nanos - b.nanos)),
    overload("_-_(uint, uint) -> uint", _of_uints(operator.sub)),
    overload("_*_(double, double) -> double", operator.mul),
    overload("_*_(int, int) -> int", _of_ints(operator.mul)),
    overload("_*_(uint, uint) -> uint", _of_uints(operator.mul)),
    overload("_/_(double, double) -> double", _double_quotient),
    overload("_/_(int, int) -> int", _int_quotient),
    overload("_/_(uint, uint) -> uint", _uint_quotient),
    overload("_%_(int, int) -> int", _int_remainder),
    overload("_%_(uint, uint) -> uint", _uint_remainder),
    overload("-_(double) -> double", operator.neg),
    overload("-_(int) -> int", lambda value: in_int(-value)),
    *_comparisons("_<_", operator.lt),
    *_comparisons("_<=_", operator.le),
    *_comparisons("_>_", operator.gt),
    *_comparisons("_>=_", operator.ge),
    overload("@in(A, list(A)) -> bool", contains_value, costs.second_size, needs_frame=True),
    overload("@in(A, map(A, B)) -> bool", lambda key, entries: key in entries),
    *overloads(
        """
        size(bytes) -> int
        bytes.size() -> int
        size(list(A)) -> int
        list(A).size() -> int
        size(map(A, B)) -> int
        map(A, B).size() -> int
        size(string) -> int
        string.size() -> int
        """,
        len,
    ),
]
