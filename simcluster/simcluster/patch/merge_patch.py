"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902) on objects that must not change."""

import copy
from typing import Any

from simcluster.apiserver.errors import bad_request, rejected, too_many_operations
from simcluster.schema import json_word

Json = dict[str, Any]

MAX_OPERATIONS = 10_000


def json_merge(target: object, patch: object) -> Any:
    """Apply a JSON merge patch; ``null`` removes, objects merge, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = json_merge(merged.get(key), value)
    return merged


def json_patch(target: Json, operations: object) -> Json:
    """Apply a JSON patch to a copy of ``target``.

    Raises:
        ApiError: 400, ``operations`` is no list of operations; 413, there are too many; 422, one
            of them does not apply.
    """
    if operations is None:
        operations = []
    if not isinstance(operations, list):
        word = json_word(operations)
        where = "Go value of type []handlers.jsonPatchOp"
        raise bad_request(f"error decoding patch: json: cannot unmarshal {word} into {where}")
    if len(operations) > MAX_OPERATIONS:
        raise too_many_operations(MAX_OPERATIONS, len(operations))
    document: Any = copy.deepcopy(target)
    try:
        for operation in operations:
            document = _apply(document, operation)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise rejected() from error  # kube-apiserver does not tell the reason either
    if not isinstance(document, dict):
        raise rejected()
    return document


_OPERATION_KEYS = frozenset(("from", "op", "path", "value"))


def unknown_keys(operations: object) -> list[str]:
    """Descriptions of the unknown keys of the operations of a JSON patch."""
    return [
        f'json patch unknown field "[{position}].{key}"'
        for position, operation in enumerate(operations if isinstance(operations, list) else ())
        for key in operation
        if key not in _OPERATION_KEYS
    ]


def _apply(document: Any, operation: Json) -> Any:
    op, path = operation["op"], _tokens(operation.get("path", ""))
    if op == "test":
        if not _is_equal(_resolve(document, path), operation.get("value")):
            raise ValueError(operation)
        return document
    if op == "remove":
        _remove(document, path)
        return document
    if op in {"add", "replace"}:
        return _put(document, path, copy.deepcopy(operation.get("value")), insert=op == "add")
    if op in {"move", "copy"}:
        source = _tokens(operation.get("from", ""))
        value = copy.deepcopy(_resolve(document, source))
        if op == "move":
            _remove(document, source)
        return _put(document, path, value, insert=True)
    raise ValueError(op)


def _tokens(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise ValueError(pointer)
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _resolve(document: Any, path: list[str]) -> Any:
    for token in path:
        document = document[_key(document, token)]
    return document


def _key(holder: Any, token: str) -> str | int:
    """The key of an object, or the index of an array, that a token means."""
    if isinstance(holder, dict):
        return token
    if not isinstance(holder, list) or not token.removeprefix("-").isdigit():
        raise TypeError(token)
    return int(token)


def _is_equal(value: Any, other: Any) -> bool:
    """Whether two values are equal, in the types of their numbers, too."""
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(
            _is_equal(inner, other[key]) for key, inner in value.items()
        )
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_is_equal, value, other))
    return type(value) is type(other) and bool(value == other)


def _remove(document: Any, path: list[str]) -> None:
    holder = _resolve(document, path[:-1])
    del holder[_key(holder, path[-1])]


def _put(document: Any, path: list[str], value: Any, *, insert: bool) -> Any:
    if not path:
        return value
    holder, token = _resolve(document, path[:-1]), path[-1]
    if isinstance(holder, list) and insert:
        position = len(holder) if token == "-" else _key(holder, token)  # noqa: S105 - of a JSON pointer
        if not isinstance(position, int) or not -len(holder) - 1 <= position <= len(holder):
            raise IndexError(token)
        if position < 0:
            position += len(holder) + 1
        holder.insert(position, value)
        return document
    key = _key(holder, token)
    if not insert:
        _ = holder[key]  # replaces only values that exist
    holder[key] = value
    return document
