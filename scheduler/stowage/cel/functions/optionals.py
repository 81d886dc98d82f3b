"""Optional values. The planner evaluates ``or`` and ``orValue``, which may skip their argument."""

from __future__ import annotations

from typing import Any

from stowage.cel.errors import CelRuntimeError
from stowage.cel.signatures.functions import Overload, overload
from stowage.cel.values.containers import NONE, CelMap, Optional
from stowage.cel.values.times import Duration


def _is_zero(value: Any) -> bool:
    if isinstance(value, CelMap | list | str | bytes):
        return len(value) == 0
    if isinstance(value, Duration):
        return value.nanos == 0
    if isinstance(value, Optional):
        return not value.present or _is_zero(value.content)
    return value is None or (isinstance(value, bool | int | float) and not value)


def _of_non_zero(value: Any) -> Optional:
    return NONE if _is_zero(value) else Optional(value)


def _first(elements: list[Any]) -> Optional:
    return Optional(elements[0]) if elements else NONE


def _last(elements: list[Any]) -> Optional:
    return Optional(elements[-1]) if elements else NONE


def _unwrap(elements: list[Any]) -> list[Any]:
    for each in elements:
        if not isinstance(each, Optional):
            raise CelRuntimeError("value is not optional")
    return [each.content for each in elements if each.present]


FUNCTIONS: list[Overload] = [
    overload("optional.of(V) -> optional_type(V)", Optional),
    overload("optional.ofNonZeroValue(V) -> optional_type(V)", _of_non_zero),
    overload("optional.none() -> optional_type(V)", lambda: NONE),
    overload("optional_type(V).value() -> V", Optional.value),
    overload("optional_type(V).hasValue() -> bool", lambda value: value.present),
    overload("optional_type(V).or(optional_type(V)) -> optional_type(V)"),
    overload("optional_type(V).orValue(V) -> V"),
    overload("list(V).first() -> optional_type(V)", _first),
    overload("list(V).last() -> optional_type(V)", _last),
    overload("optional.unwrap(list(optional_type(V))) -> list(V)", _unwrap),
    overload("list(optional_type(V)).unwrapOpt() -> list(V)", _unwrap),
]
