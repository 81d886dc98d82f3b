"""Checks single values by their Go type, with the error messages of Go's decoder."""

import datetime
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from simcluster.schema.go_types import go_type
from simcluster.schema.types import ListType, MapType, Scalar, Struct, Type
from stowage.api.values.quantity import parse_quantity

Owner = tuple[Struct, str]

QUANTITY_FORM = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
LIMITS = {"int32": 2**31, "int64": 2**63}
TIME_FORM = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_LAYOUTS = {
    "Time": "2006-01-02T15:04:05Z07:00",
    "MicroTime": "2006-01-02T15:04:05.000000Z07:00",
}


class DecodingError(ValueError):
    """A value cannot be decoded into its type; the message is that of Go's decoder."""

    @classmethod
    def of_type(cls, value: Any, place: str, owner: Owner, type_: Type) -> "DecodingError":
        """``json: cannot unmarshal string into Go struct field PodSpec.spec.containers ...``."""
        struct, field = owner
        is_field = struct.fields.get(field) == type_
        expected = struct.go_type(field) if is_field else _go_name(type_)
        name = struct.name.rpartition(".")[2]
        where = f"Go struct field {name}.{place}"
        return cls(f"json: cannot unmarshal {json_word(value)} into {where} of type {expected}")


def _go_name(type_: Type) -> str:
    if isinstance(type_, Struct):
        return "v1." + type_.name.rpartition(".")[2]
    if isinstance(type_, ListType):
        return "[]" + _go_name(type_.item)
    if isinstance(type_, MapType):
        return "map[string]" + _go_name(type_.value)
    return go_type("", "", type_.kind)


def json_word(value: Any) -> str:
    """The JSON type of a value, as Go's messages name it."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number" if not isinstance(value, float) else f"number {value}"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    return "object" if isinstance(value, dict) else "null"


@lru_cache(maxsize=8192)
def _canonical(text: str) -> str | None:
    try:
        return parse_quantity(text).canonical() if text else "0"
    except ValueError:
        return None


def canonical_quantity(value: Any) -> str | None:
    """A quantity in canonical form (``1`` for ``1000m``); ``None`` if it is malformed."""
    if value.__class__ is str or value.__class__ is int or value.__class__ is float:
        return _canonical(str(value))
    return None


def checked_scalar(value: Any, kind: str, place: Callable[[], str], owner: Owner) -> Any:
    """The value in its stored form.

    Raises:
        DecodingError: the value is of another type.
    """
    check = _CHECKS.get(kind)
    if check is not None:
        return check(value, kind)
    if kind == "any":
        return value
    if _is_right(value, kind):
        return value
    error = DecodingError.of_type(value, place(), owner, Scalar(kind))
    if kind in LIMITS and isinstance(value, int) and not isinstance(value, bool):
        error = DecodingError(str(error).replace("number", f"number {value}", 1))
    raise error


def _is_right(value: Any, kind: str) -> bool:
    limit = LIMITS.get(kind)
    if limit is not None:
        return type(value) is int and -limit <= value < limit
    if kind == "float":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is (bool if kind == "bool" else str)


def _quantity(value: Any, _kind: str) -> str:
    canonical = canonical_quantity(value)
    if canonical is None:
        raise DecodingError(QUANTITY_FORM)
    return canonical


def _time(value: Any, kind: str) -> str | None:
    if not isinstance(value, str):
        message = f"json: cannot unmarshal {json_word(value)} into Go value of type string"
        raise DecodingError(message)
    if not value:
        return None
    try:
        if not TIME_FORM.fullmatch(value):
            raise ValueError(value)
        moment = datetime.datetime.fromisoformat(value.upper()).astimezone(datetime.UTC)
    except ValueError as error:
        layout = _LAYOUTS[kind]
        message = f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"'
        raise DecodingError(message) from error
    form = "%Y-%m-%dT%H:%M:%SZ" if kind == "Time" else "%Y-%m-%dT%H:%M:%S.%fZ"
    return moment.strftime(form)


def _int_or_string(value: Any, _kind: str) -> int | str:
    if isinstance(value, str) or type(value) is int:
        return value
    raise DecodingError(f"json: cannot unmarshal {json_word(value)} into Go value of type int32")


_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]")


def _bytes(value: Any, _kind: str) -> str:
    if not isinstance(value, str):
        raise DecodingError(
            f"json: cannot unmarshal {json_word(value)} into Go value of type []uint8"
        )
    text = value.replace("\n", "").replace("\r", "")
    if not _BASE64.fullmatch(text):
        found = _NOT_BASE64.search(text.rstrip("="))
        position = found.start() if found else len(text) - len(text) % 4
        raise DecodingError(f"illegal base64 data at input byte {position}")
    return text


_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "Quantity": _quantity,
    "Time": _time,
    "MicroTime": _time,
    "IntOrString": _int_or_string,
    "bytes": _bytes,
}
