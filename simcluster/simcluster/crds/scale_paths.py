"""Validation of the fields that the scale subresource of a custom resource reads and sets."""

from collections.abc import Iterator, Mapping
from typing import Any

from simcluster.apiserver.errors import FieldError, invalid_value

Json = dict[str, Any]

_LARGEST = 2**31 - 1
_GO_TYPES: dict[type, str] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
    type(None): "<nil>",
}


def scale_errors(obj: Json, paths: Mapping[str, str]) -> Iterator[FieldError]:
    """Errors of the counts and of the selector at the paths of ``subresources.scale``."""
    for key in ("specReplicasPath", "statusReplicasPath"):
        path = paths[key]
        count, why = _found(obj, path, int)
        if why:
            yield invalid_value(path, 0, why)
        elif count is not None and count < 0:
            yield invalid_value(path, count, "should be a non-negative integer")
        elif count is not None and count > _LARGEST:
            yield invalid_value(path, count, f"should be less than or equal to {_LARGEST}")
    if selector_path := paths.get("labelSelectorPath"):
        _, why = _found(obj, selector_path, str)
        if why:
            yield invalid_value(selector_path, "", why)


def _found(obj: Json, path: str, expected: type) -> tuple[Any, str]:
    """The value at a path, or the reason why it cannot be read."""
    value: Any = obj
    *parents, last = path.removeprefix(".").split(".")
    for depth, key in enumerate((*parents, last)):
        if value is None and depth:
            return None, ""
        if not isinstance(value, dict):
            walked = ".".join(("", *parents[:depth], key))
            return None, _unreadable(walked, value, "map[string]interface{}")
        if key not in value:
            return None, ""
        value = value[key]
    if type(value) is not expected:
        return None, _unreadable(path, value, _GO_TYPES[expected])
    return value, ""


def _unreadable(path: str, value: Any, expected: str) -> str:
    shown = "<nil>" if value is None else value
    types = f"is of the type {_GO_TYPES[type(value)]}, expected {expected}"
    return f".{path.removeprefix('.')} accessor error: {shown} {types}"
