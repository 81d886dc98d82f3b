"""The fields of the answers that commands write as JSON, from the structs that are written."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from stowage.analysis.capacity import CapacityAnswer
from stowage.analysis.compact import CompactAnswer
from stowage.analysis.explanation import NodeExplanation, PodExplanation
from stowage.analysis.gang_capacity import GangCapacityAnswer
from stowage.analysis.group_explanation import GroupExplanation
from stowage.analysis.what_if import WhatIfAnswer

ANSWERS: Mapping[str, type[msgspec.Struct]] = {
    "stowage explain pod": PodExplanation,
    "stowage explain node": NodeExplanation,
    "stowage explain group": GroupExplanation,
    "stowage what-if": WhatIfAnswer,
    "stowage capacity": CapacityAnswer,
    "stowage capacity, of gangs": GangCapacityAnswer,
    "stowage compact": CompactAnswer,
}
_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)
_NAMES: Mapping[Any, str] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
}


def answer_fields() -> Iterator[str]:
    """A table for each answer, and then one for each type of object in them."""
    parts: dict[type[msgspec.Struct], None] = {}
    for command, answer in ANSWERS.items():
        yield from _section(command, answer)
        for part in _parts(answer):
            if part not in ANSWERS.values():
                parts.setdefault(part)
    for part in parts:
        yield from _section(part.__name__, part)


def _section(heading: str, struct: type[msgspec.Struct]) -> Iterator[str]:
    text = inspect.getdoc(struct) or ""
    about, _, attributes = text.partition("\n\nAttributes:\n")
    described = dict(_ATTRIBUTE.findall(attributes))
    types = get_type_hints(struct)
    yield f"### {heading}"
    yield ""
    yield _prose(about.partition("\n\n")[0])
    yield ""
    yield "| Field | Type | |"
    yield "|---|---|---|"
    for field in msgspec.structs.fields(struct):
        kind = _type_name(types[field.name])
        yield f"| `{field.encode_name}` | {kind} | {_prose(described.get(field.name, ''))} |"
    yield ""


def _prose(text: str) -> str:
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")


def _type_name(kind: Any) -> str:
    """The type in JSON; objects of the answers are linked."""
    inner = [each for each in get_args(kind) if each is not NoneType and each is not ...]
    if get_origin(kind) is tuple:
        return f"array of {_type_name(inner[0])}"
    if get_origin(kind) is dict:
        return f"object of {_type_name(inner[1])}"
    if inner:
        return _type_name(inner[0])
    if inspect.isclass(kind) and issubclass(kind, msgspec.Struct):
        found = [name for name, answer in ANSWERS.items() if answer is kind]
        name = found[0] if found else kind.__name__
        return f"[{name}](#{name.lower().replace(',', '').replace(' ', '-')})"
    return "string" if inspect.isclass(kind) and issubclass(kind, Enum) else _NAMES[kind]


def _parts(struct: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    """The structs in the fields of a struct, and in theirs."""
    for kind in get_type_hints(struct).values():
        for part in _structs_in(kind):
            yield part
            yield from _parts(part)


def _structs_in(kind: Any) -> Iterator[type[msgspec.Struct]]:
    if inspect.isclass(kind) and issubclass(kind, msgspec.Struct):
        yield kind
    for inner in get_args(kind):
        yield from _structs_in(inner)
