"""Conversions: ``int(x)``, ``string(x)``, ``type(x)`` and so on."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from stowage.cel.errors import CelRuntimeError
from stowage.cel.functions import costs
from stowage.cel.functions.operators import in_int, in_uint
from stowage.cel.signatures.functions import Overload, overload, overloads
from stowage.cel.values.containers import CelMap, Optional, TypeValue
from stowage.cel.values.doubles import double_text
from stowage.cel.values.named_format import NamedFormat
from stowage.cel.values.network import CIDR, IP
from stowage.cel.values.numbers import UINT_MAX, Uint
from stowage.cel.values.quantity import Quantity
from stowage.cel.values.semver import Semver
from stowage.cel.values.times import (
    SECOND,
    Duration,
    Timestamp,
    duration_of,
    parse_duration,
    parse_timestamp,
    timestamp_of,
)
from stowage.cel.values.url import URL

CONVERSIONS = frozenset(
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"],
)
"""Functions that are evaluated when the program is made, if their argument is constant."""

TYPE_NAMES: Mapping[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    CelMap: "map",
    Optional: "optional_type",
    TypeValue: "type",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    Quantity: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
    URL: "kubernetes.URL",
    IP: "net.IP",
    CIDR: "net.CIDR",
    NamedFormat: "kubernetes.NamedFormat",
}

_TRUE = frozenset(["1", "t", "T", "TRUE", "true", "True"])
_FALSE = frozenset(["0", "f", "F", "FALSE", "false", "False"])
_SIGNED = re.compile(r"[+-]?[0-9]{1,40}")
_UNSIGNED = re.compile(r"[0-9]{1,40}")
_DECIMAL = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)",
    re.IGNORECASE,
)
_HEXADECIMAL = re.compile(r"[+-]?0x[0-9a-f]*\.?[0-9a-f]*p[+-]?[0-9]+", re.IGNORECASE)


def type_name(value: Any) -> str:
    """The name of the type of a value at run time."""
    return TYPE_NAMES[type(value)]


def _conversion_error(source: str, target: str) -> CelRuntimeError:
    return CelRuntimeError(f"type conversion error from '{source}' to '{target}'")


def _same(value: Any) -> Any:
    return value


def _bool_of(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise _conversion_error("string", "bool")


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelRuntimeError("invalid UTF-8 in bytes, cannot convert to string") from None


def _int_of_double(value: float) -> int:
    if not -(2.0**63) < value < 2.0**63:
        raise CelRuntimeError("integer overflow")
    return int(value)


def _uint_of_double(value: float) -> Uint:
    if not 0 <= value < 2.0**64:
        raise CelRuntimeError("unsigned integer overflow")
    return Uint(int(value))


def _int_of_text(text: str) -> int:
    if not _SIGNED.fullmatch(text):
        raise _conversion_error("string", "int")
    return in_int(int(text))


def _uint_of_text(text: str) -> Uint:
    if not _UNSIGNED.fullmatch(text) or int(text) > UINT_MAX:
        raise _conversion_error("string", "uint")
    return Uint(int(text))


def _double_of_text(text: str) -> float:
    try:
        if _HEXADECIMAL.fullmatch(text):
            return float.fromhex(text)
        value = float(text) if _DECIMAL.fullmatch(text) else None
    except (OverflowError, ValueError):
        value = None
    if value is None or (math.isinf(value) and "inf" not in text.lower()):
        raise _conversion_error("string", "double")
    return value


def _decimal_text(value: int) -> str:
    return str(int(value))


def _converted(target: str, sources: Mapping[str, Callable[[Any], Any]]) -> list[Overload]:
    declared = {target: _same, **sources}
    return [overload(f"{target}({each}) -> {target}", how) for each, how in declared.items()]


FUNCTIONS: list[Overload] = [
    overload("type(A) -> type(A)", lambda value: TypeValue(type_name(value))),
    overload("dyn(A) -> dyn", _same),
    *_converted("bool", {"string": _bool_of}),
    *_converted("double", {"int": float, "string": _double_of_text, "uint": float}),
    *_converted("duration", {"int": duration_of, "string": parse_duration}),
    *_converted(
        "int",
        {
            "double": _int_of_double,
            "duration": lambda value: value.nanos,
            "string": _int_of_text,
            "timestamp": lambda value: value.nanos // SECOND,
            "uint": lambda value: in_int(int(value)),
        },
    ),
    *_converted(
        "timestamp",
        {"int": lambda seconds: timestamp_of(seconds * SECOND), "string": parse_timestamp},
    ),
    *_converted("uint", {"double": _uint_of_double, "int": in_uint, "string": _uint_of_text}),
    overload("bytes(bytes) -> bytes", _same),
    overload("bytes(string) -> bytes", str.encode, costs.traversal),
    overload("string(string) -> string", _same),
    overload("string(bool) -> string", lambda value: "true" if value else "false"),
    overload("string(bytes) -> string", _text_of_bytes, costs.traversal),
    overload("string(double) -> string", double_text),
    *overloads(
        """
        string(duration) -> string
        string(timestamp) -> string
        string(IP) -> string
        string(CIDR) -> string
        """,
        str,
    ),
    *overloads("string(int) -> string\nstring(uint) -> string", _decimal_text),
]
