"""Checks of argument types at run time, where the static type is not known in full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stowage.cel.functions.conversions import TYPE_NAMES
from stowage.cel.signatures.functions import Overload
from stowage.cel.signatures.types import Kind, Type, is_dyn
from stowage.cel.values.containers import CelMap

Guard = Callable[[Any], bool]

_CLASSES = {name: cls for cls, name in TYPE_NAMES.items()}


def guard_of(expected: Type) -> Guard | None:
    """The check that a value is of a type; None if every value is.

    A list or map is checked by its first element, as cel-go does it.
    """
    if is_dyn(expected) or expected.kind in (Kind.PARAMETER, Kind.TYPE):
        return None
    found = _CLASSES.get(expected.name)
    if found is None:  # a type of which there are no values here
        return lambda _value: False
    guards = [guard_of(part) for part in expected.parameters]
    if expected.kind is Kind.LIST and guards[0] is not None:
        return _list_guard(guards[0])
    if expected.kind is Kind.MAP and any(guards):
        return _map_guard(*guards)
    return lambda value: type(value) is found


def accepts(overload: Overload, known: Sequence[Type]) -> Callable[[tuple[Any, ...]], bool] | None:
    """The check of the arguments of an overload; None if their static types suffice."""
    guards = [
        None if _is_concrete(actual) else guard_of(expected)
        for expected, actual in zip(overload.arguments, known, strict=True)
    ]
    needed = [(index, guard) for index, guard in enumerate(guards) if guard is not None]
    if not needed:
        return None
    if len(needed) == 1:
        ((only, check),) = needed
        return lambda values: check(values[only])
    return lambda values: all(guard(values[index]) for index, guard in needed)


def _is_concrete(what: Type) -> bool:
    """Whether values of this static type need no check: it has no part that is not known."""
    if is_dyn(what) or what.kind in (Kind.PARAMETER, Kind.NULL, Kind.ERROR):
        return False
    return all(map(_is_concrete, what.parameters))


def _list_guard(element: Guard) -> Guard:
    return lambda value: type(value) is list and (not value or element(value[0]))


def _map_guard(key: Guard | None, element: Guard | None) -> Guard:
    def check(value: Any) -> bool:
        if not isinstance(value, CelMap):
            return False
        for first_key, first in value.items():
            return (key is None or key(first_key)) and (element is None or element(first))
        return True

    return check
