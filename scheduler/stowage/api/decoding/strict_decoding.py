"""Strict decoding of hand-written configuration: reports every error, with its path.

An unknown field is an error here, unlike in objects of the API server (`decode`).
"""

import math
import types
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from stowage.api.config.errors import MAX_ERRORS, ConfigError
from stowage.api.decoding.suggestion import did_you_mean
from stowage.api.values.duration import Duration, parse_duration

StructT = TypeVar("StructT", bound=msgspec.Struct)

_MAPPING = "a mapping of fields"
_EXPECTATIONS: dict[object, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    bytes: "base64 text",
    Duration: "a duration such as 15s or 1m30s",
}


def decode_struct(
    value: object, struct: type[StructT], path: str, errors: list[ConfigError]
) -> StructT:
    """Decode a mapping to ``struct``; invalid fields are added to ``errors`` and keep defaults.

    Args:
        value: Builtins, e.g. parsed YAML. A null field counts as absent, as in Go.
        struct: The type; all its fields must have defaults.
        path: The path of ``value``, "" for the root.
        errors: Receives the errors.
    """
    if not isinstance(value, Mapping):
        errors.append(ConfigError(path or "<root>", value, _MAPPING))
        return struct()
    fields = struct_fields(struct)
    decoded = {}
    for key, content in value.items():
        field = fields.get(key)
        shown = str(key) or '""'
        field_path = f"{path}.{shown}" if path else shown
        if field is None:
            # A suggestion is searched for only if the error will be listed.
            known = fields if len(errors) < MAX_ERRORS else ()
            errors.append(ConfigError(field_path, content, _unknown_field(str(key), known)))
        elif content is not None:
            before = len(errors)
            read = _decode(content, field.type, field_path, errors)
            if read is not None or len(errors) == before:
                decoded[field.name] = read
    return struct(**decoded)


@cache
def struct_fields(struct: type[msgspec.Struct]) -> Mapping[str, msgspec.structs.FieldInfo]:
    """The fields of a struct by their names in documents; msgspec takes 0.1 ms to find them."""
    return {field.encode_name: field for field in msgspec.structs.fields(struct)}


def _unknown_field(key: str, known: Iterable[str]) -> str:
    names = list(known)
    if not names:
        return "no such field"
    hint = did_you_mean(key, names) or f"; known are {', '.join(names)}"
    return f"no such field{hint}"


def _decode(value: object, wanted: Any, path: str, errors: list[ConfigError]) -> Any:
    if get_origin(wanted) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(wanted) if kind is not types.NoneType]
        wanted = kinds[0] if len(kinds) == 1 else wanted
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return decode_struct(value, wanted, path, errors)
    if get_origin(wanted) is tuple:
        return _decode_items(value, get_args(wanted)[0], path, errors)
    try:
        read = msgspec.convert(value, wanted, dec_hook=_decode_duration)
    except (msgspec.ValidationError, ValueError) as refusal:
        errors.append(ConfigError(path, value, _expectation(wanted, refusal)))
        return None
    if isinstance(read, float) and not math.isfinite(read):
        # YAML has them, JSON does not: the configuration could not be shown or recorded.
        errors.append(ConfigError(path, str(value), "a finite number"))
        return None
    return read


def _expectation(wanted: Any, refusal: Exception) -> str:
    if wanted in _EXPECTATIONS:
        return _EXPECTATIONS[wanted]
    if get_origin(wanted) is Literal:
        values = ", ".join(map(str, get_args(wanted)))
        return values if len(get_args(wanted)) == 1 else f"one of {values}"
    if get_origin(wanted) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(wanted) if kind is not types.NoneType]
        return " or ".join(_expectation(kind, refusal) for kind in kinds)
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return f"one of {', '.join(str(member.value) for member in wanted)}"
    if get_origin(wanted) is Annotated:
        # The bounds of a msgspec.Meta, in msgspec's words: "Expected `int` >= 1".
        return str(refusal).removeprefix("Expected ").replace("`", "")
    return _MAPPING


def _decode_items(value: object, item: Any, path: str, errors: list[ConfigError]) -> Any:
    if not isinstance(value, Sequence) or isinstance(value, str):
        errors.append(ConfigError(path, value, "a list"))
        return None
    items = (
        _decode(element, item, f"{path}[{index}]", errors) for index, element in enumerate(value)
    )
    return tuple(element for element in items if element is not None)


def _decode_duration(wanted: type, value: Any) -> Any:
    if wanted is Duration and isinstance(value, str):
        return parse_duration(value)
    raise ValueError(f"{value!r} is not of type {wanted.__name__}")
