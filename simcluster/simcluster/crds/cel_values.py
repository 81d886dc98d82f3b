"""Types and values in the Common Expression Language of what a structural schema describes.

Follows ``schema/cel`` of apiextensions-apiserver: an object with properties has a type of its own,
in which names that are no identifiers are escaped; a root and an embedded resource also have a
kind, an apiVersion, and the name in their metadata.
"""

import base64
import contextlib
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from stowage.cel import Declarations
from stowage.cel.checking.environment import NEW_FUNCTIONS
from stowage.cel.signatures.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    optional_of,
    struct,
)
from stowage.cel.values.containers import CelMap
from stowage.cel.values.times import parse_duration, parse_timestamp

Json = dict[str, Any]

_SCALARS: Mapping[tuple[str, str], Type] = {
    ("boolean", ""): BOOL,
    ("integer", ""): INT,
    ("number", ""): DOUBLE,
    ("string", ""): STRING,
    ("string", "byte"): BYTES,
    ("string", "date"): TIMESTAMP,
    ("string", "date-time"): TIMESTAMP,
    ("string", "duration"): DURATION,
}
_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for"),
        *("function", "if", "import", "let", "loop", "package", "namespace", "return", "var"),
        *("void", "while"),
    )
)
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED = re.compile(r"__|[./-]")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_TEXT: Json = {"type": "string"}
_OF_RESOURCES: Json = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}},
}


def escaped(name: str) -> str | None:
    """A property's name in expressions; ``None`` if they cannot name it."""
    if not _IDENTIFIER.fullmatch(name):
        return None
    if name in _RESERVED:
        return f"__{name}__"
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], name)


def declarations_of(schema: Json, *, is_resource: bool, has_optional_old: bool) -> Declarations:
    """The variables of a rule of this schema: ``self`` and ``oldSelf``."""
    structs: dict[str, Mapping[str, Type]] = {}
    type_ = _type_of(schema, structs, is_resource) or DYN
    old = optional_of(type_) if has_optional_old else type_
    return Declarations({"self": type_, "oldSelf": old}, structs, NEW_FUNCTIONS)


def _is_embedded(schema: Json) -> bool:
    return bool(schema.get("x-kubernetes-embedded-resource"))


def properties_of(schema: Json, *, is_resource: bool) -> Json:
    """The schemas of an object's properties."""
    properties: Json = schema.get("properties") or {}
    return {**properties, **_OF_RESOURCES} if is_resource or _is_embedded(schema) else properties


def _type_of(
    schema: Json, structs: dict[str, Mapping[str, Type]], is_resource: bool = False
) -> Type | None:
    """The type of a schema's values; ``None`` if expressions cannot name them."""
    kind, others = schema.get("type", ""), schema.get("additionalProperties")
    if schema.get("x-kubernetes-int-or-string"):
        return DYN
    if kind == "array":
        item = _type_of(schema.get("items") or {}, structs)
        return None if item is None else list_of(item)
    if kind != "object":
        format_ = schema.get("format", "")
        return _SCALARS.get((kind, format_)) or _SCALARS.get((kind, ""))
    if isinstance(others, dict):
        value = _type_of(others, structs)
        return None if value is None else map_of(STRING, value)
    name = f"object{len(structs)}"
    structs[name] = {}
    structs[name] = {
        escape: type_
        for key, inner in properties_of(schema, is_resource=is_resource).items()
        if (type_ := _type_of(inner, structs)) is not None and (escape := escaped(key)) is not None
    }
    return struct(name)


def cel_value(value: Any, schema: Json, *, is_resource: bool = False) -> Any:
    """A value of an object, as expressions see it; one of another type stays as it is."""
    if isinstance(value, list):
        return [cel_value(item, schema.get("items") or {}) for item in value]
    if isinstance(value, dict):
        return CelMap(_entries(value, schema, is_resource))
    if isinstance(value, int) and schema.get("type") == "number":
        return float(value)
    if isinstance(value, str) and schema.get("format") in _FORMATS:
        with contextlib.suppress(ValueError):
            return _FORMATS[schema["format"]](value)
    return value


def _entries(value: Json, schema: Json, is_resource: bool) -> Json:
    others = schema.get("additionalProperties")
    if others or schema.get("type") != "object":
        inner = others if isinstance(others, dict) else {}
        return {key: cel_value(item, inner) for key, item in value.items()}
    properties = properties_of(schema, is_resource=is_resource)
    return {
        escape: cel_value(value[key], inner)
        for key, inner in properties.items()
        if key in value and (escape := escaped(key)) is not None
    }


def _date(text: str) -> Any:
    return parse_timestamp(f"{text}T00:00:00Z")


_FORMATS: Mapping[str, Callable[[str], Any]] = {
    "byte": partial(base64.b64decode, validate=True),
    "date": _date,
    "date-time": parse_timestamp,
    "duration": parse_duration,
}
