"""Makes decoded JSON conform to its type, with the API server's error messages.

Nearly every object conforms already, and one quick check of each field finds that out. Any other
object is visited again with the path of every field at hand.
"""

import copy
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from simcluster.schema.scalars import TIME_FORM, DecodingError, canonical_quantity, checked_scalar
from simcluster.schema.types import ListType, MapType, Scalar, Struct, Type

Json = dict[str, Any]


class Problems:
    """Problems of an object that do not prevent decoding.

    Attributes:
        unknown: paths of fields the type does not have, in the object's order.
        num_keys: keys of all maps and objects.
    """

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self.num_keys = 0


def conform(obj: Json, struct: Struct) -> Problems:
    """Make ``obj`` an object of its type, in place.

    Raises:
        DecodingError: a value is of the wrong type; ``obj`` may be changed in part.
    """
    problems = Problems()
    if not _is_clean_struct(obj, struct, problems):
        problems.num_keys = num_keys(obj)
        _conform_struct(obj, struct, (), problems)
    return problems


def num_keys(value: Any) -> int:
    """Keys of all objects in a JSON value."""
    if isinstance(value, dict):
        return len(value) + sum(map(num_keys, value.values()))
    return sum(map(num_keys, value)) if isinstance(value, list) else 0


def _is_clean_struct(obj: Json, struct: Struct, problems: Problems) -> bool:
    problems.num_keys += len(obj)
    plain, fields, kept = struct.plain, struct.fields, struct.kept_empty
    for field, value in obj.items():
        expected = plain.get(field)
        if expected is not None:
            if value.__class__ is not expected:
                return False
            if expected is int and not _fits(value, fields[field]):
                return False
        elif (type_ := fields.get(field)) is None or not _is_clean(value, type_, problems):
            return False
        if not value and field not in kept:
            return False
    for field, value in struct.always_written.items():
        if field not in obj:
            obj[field] = copy.copy(value)
    return True


_INT32 = 2**31


def _fits(value: Any, type_: Type) -> bool:
    if -_INT32 <= value < _INT32:
        return True
    return isinstance(type_, Scalar) and type_.kind == "int64" and -(2**63) <= value < 2**63


def _is_clean(value: Any, type_: Type, problems: Problems) -> bool:
    if isinstance(type_, Struct):
        return value.__class__ is dict and _is_clean_struct(value, type_, problems)
    if isinstance(type_, ListType):
        return value.__class__ is list and _are_clean(value, type_.item, problems)
    if isinstance(type_, MapType):
        return value.__class__ is dict and _is_clean_map(value, type_, problems)
    return _is_clean_scalar(value, type_.kind, problems)


_TEXT = Scalar("string")


def _is_clean_map(value: Json, type_: MapType, problems: Problems) -> bool:
    problems.num_keys += len(value)
    inner = type_.value
    if inner == _TEXT:
        return not value or set(map(type, value.values())) == {str}
    if isinstance(inner, Scalar) and inner.kind == "Quantity":
        for key, amount in value.items():
            canonical = canonical_quantity(amount)
            if canonical is None:
                return False
            value[key] = canonical
        return True
    return _are_clean(value.values(), inner, problems)


def _are_clean(values: Iterable[Any], type_: Type, problems: Problems) -> bool:
    for value in values:  # noqa: SIM110 - a generator is slower
        if not _is_clean(value, type_, problems):
            return False
    return True


_TIMES = {"Time": 20, "MicroTime": 27}
"""Lengths of the two forms."""


@lru_cache(maxsize=1024)
def _is_canonical_time(text: str, kind: str) -> bool:
    return len(text) == _TIMES[kind] and text[-1] == "Z" and TIME_FORM.fullmatch(text) is not None


_LIMITS = {"int32": 2**31, "int64": 2**63}


def _is_clean_scalar(value: Any, kind: str, problems: Problems) -> bool:
    limit = _LIMITS.get(kind)
    if limit is not None:
        return value.__class__ is int and -limit <= value < limit
    if kind in {"string", "IntOrString"}:
        return value.__class__ is str or (value.__class__ is int and kind != "string")
    if kind in _TIMES:
        return value is None or (value.__class__ is str and _is_canonical_time(value, kind))
    if kind == "any":
        problems.num_keys += num_keys(value)
        return value is not None
    return False


class _Key(str):
    """A key of a map; Go's decoder leaves such keys out of paths."""

    __slots__ = ()


Path = tuple[str | int, ...]


def _conform_struct(obj: Json, struct: Struct, path: Path, problems: Problems) -> None:
    for field in list(obj):
        type_ = struct.fields.get(field)
        if type_ is None:
            problems.unknown.append(_text((*path, field)))
            del obj[field]
            continue
        value = obj[field]
        if value is None:
            del obj[field]
            continue
        owner = (struct, field)
        obj[field] = value = _conformed(value, type_, (*path, field), owner, problems)
        if _is_empty(value) and field not in struct.kept_empty:
            del obj[field]
    for field, value in struct.always_written.items():
        obj.setdefault(field, copy.copy(value))


def _is_empty(value: Any) -> bool:
    return value in ("", 0, [], {}) or value is False


def _conformed(
    value: Any, type_: Type, path: Path, owner: tuple[Struct, str], problems: Problems
) -> Any:
    if isinstance(type_, Scalar):
        return checked_scalar(value, type_.kind, lambda: _place(path), owner)
    if isinstance(type_, ListType):
        return _conformed_list(value, type_, path, owner, problems)
    if not isinstance(value, dict):
        raise DecodingError.of_type(value, _place(path), owner, type_)
    if isinstance(type_, Struct):
        _conform_struct(value, type_, path, problems)
        return value
    for key, inner in list(value.items()):
        given = "" if inner is None and isinstance(type_.value, Scalar) else inner
        value[key] = _conformed(given, type_.value, (*path, _Key(key)), owner, problems)
    return value


def _conformed_list(
    value: Any, type_: ListType, path: Path, owner: tuple[Struct, str], problems: Problems
) -> Any:
    if not isinstance(value, list):
        raise DecodingError.of_type(value, _place(path), owner, type_)
    for position, item in enumerate(value):
        kept = {} if item is None and isinstance(type_.item, Struct) else item
        value[position] = _conformed(kept, type_.item, (*path, position), owner, problems)
    return value


def _text(path: Path) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _place(path: Path) -> str:
    """A path as Go's decoder shows it: names of fields only."""
    return ".".join(part for part in path if isinstance(part, str) and type(part) is str)
