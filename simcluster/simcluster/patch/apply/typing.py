"""Checks an applied configuration against the type of its object.

Follows ``typed/validate.go`` of structured-merge-diff. Its messages show values as Go prints them.
"""

import json
from collections.abc import Iterator
from typing import Any

from simcluster.patch.apply.field_sets import Path, element_of_item, part_type, path_text
from simcluster.schema import DEDUCED, ListType, MapType, Scalar, Struct, Type

Json = dict[str, Any]

_NUMERIC = frozenset(("int32", "int64", "float"))
_TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def typing_errors(config: Json, type_: Struct) -> list[str]:
    """The errors of a configuration; an unknown field hides the errors of later ones."""
    typed = {key: value for key, value in config.items() if key not in {"apiVersion", "kind"}}
    return list(_errors(typed, type_, ()))


def listed(errors: list[str]) -> str:
    """Errors as one text."""
    return errors[0] if len(errors) == 1 else "\n  ".join(("errors:", *errors))


def _errors(value: Any, type_: Type | None, path: Path) -> Iterator[str]:
    if value is None or type_ is None or type_ == DEDUCED:
        return
    if isinstance(type_, ListType):
        yield from _list_errors(value, type_, path)
    elif isinstance(type_, Scalar):
        yield from _scalar_errors(value, type_.kind, path)
    elif not isinstance(value, dict):
        yield f"{path_text(path)}: expected map, got &{{{_printed(value)}}}"
    else:
        yield from _map_errors(value, type_, path)


def _map_errors(value: Json, type_: Struct | MapType, path: Path) -> Iterator[str]:
    for key, inner in value.items():
        place, inner_type = (*path, f"f:{key}"), part_type(type_, key)
        if inner_type is None:
            yield f"{path_text(place)}: field not declared in schema"
            return
        yield from _errors(inner, inner_type, place)


def _list_errors(value: Any, type_: ListType, path: Path) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path_text(path)}: expected list, got &{{{_printed(value)}}}"
        return
    is_associative = bool(type_.merge.apply_keys or type_.merge.is_apply_set)
    seen: set[str] = set()
    for position, item in enumerate(value):
        element = f"i:{position}"
        if is_associative:
            try:
                element = element_of_item(item, type_)
            except ValueError as error:
                yield f"{path_text(path)}: element {position}: {error}"
                return
            if element in seen:
                yield f"{path_text(path)}: duplicate entries for key {path_text((element,))}"
            seen.add(element)
        yield from _errors(item, type_.item, (*path, element))


def _scalar_errors(value: Any, kind: str, path: Path) -> Iterator[str]:
    place = path_text(path)
    if kind in _NUMERIC and (isinstance(value, bool) or not isinstance(value, int | float)):
        yield f"{place}: expected numeric (int or float), got {_TYPE_NAMES[type(value)]}"
    elif kind in {"string", "bytes"} and not isinstance(value, str):
        shown = f"&value.valueUnstructured{{Value:{_source(value)}}}"
        yield f"{place}: expected string, got {shown}"
    elif kind == "bool" and not isinstance(value, bool):
        yield f"{place}: expected boolean, got &{{{_printed(value)}}}"


def _printed(value: Any) -> str:
    """A value as Go's ``%v`` prints it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_printed(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_printed, value))}]"
    if isinstance(value, str):
        return value
    return "<nil>" if value is None else json.dumps(value)


def _source(value: Any) -> str:
    """A value as Go's ``%#v`` prints it."""
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)}:{_source(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_source, value))}}}"
    return "interface {}(nil)" if value is None else json.dumps(value)
