"""How long an object of a built-in kind is in protobuf, the form in which etcd keeps it.

The length is estimated without the field numbers: every tag counts as one byte.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from simcluster.schema.types import DEDUCED, ListType, MapType, Scalar, Struct, Type

_TIME_BYTES = 8
_FLOAT_BYTES = 8
_TAG_BYTES = 1


def protobuf_size(value: Any, type_: Type) -> int:
    """The bytes of a value of a type, without its tag and length.

    Fields that the type does not have count as JSON.
    """
    if isinstance(type_, Struct):
        return sum(
            _delimited(inner, type_.fields.get(field, DEDUCED)) for field, inner in value.items()
        )
    if isinstance(type_, ListType):
        return sum(_delimited(item, type_.item) for item in value)
    if isinstance(type_, MapType):
        return sum(_entry_size(key, inner, type_.value) for key, inner in value.items())
    return _scalar_size(value, type_)


def _entry_size(key: str, value: Any, type_: Type) -> int:
    return _with_length(_with_length(len(key.encode())) + _delimited(value, type_))


def _delimited(value: Any, type_: Type) -> int:
    """The bytes of a field; the items of a list and the entries of a map have their own tags."""
    if value is None:
        return 0
    size = protobuf_size(value, type_)
    if isinstance(type_, ListType | MapType):
        return size
    is_number = isinstance(value, bool | int | float)
    return _TAG_BYTES + size if is_number else _with_length(size)


def _with_length(size: int) -> int:
    return _TAG_BYTES + _varint_size(size) + size


def _varint_size(number: int) -> int:
    return 10 if number < 0 else max(1, -(-number.bit_length() // 7))


def _scalar_size(value: Any, type_: Scalar) -> int:
    if isinstance(value, bool):
        return 1
    if isinstance(value, int):
        return _varint_size(value)
    if isinstance(value, float):
        return _FLOAT_BYTES
    if not isinstance(value, str):
        return len(msgspec.json.encode(value))
    return _TEXT_SIZES.get(type_.kind, len)(value.encode())


_TEXT_SIZES: Mapping[str, Callable[[bytes], int]] = {
    "Time": lambda _text: _TIME_BYTES,
    "MicroTime": lambda _text: _TIME_BYTES,
    "bytes": lambda text: len(text) * 3 // 4,
    "Quantity": lambda text: _with_length(len(text)),
    "IntOrString": lambda text: _with_length(len(text)),
}
