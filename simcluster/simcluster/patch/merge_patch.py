"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902) on objects that must not change."""

import copy
from typing import Any

from simcluster.apiserver.errors import ApiError, bad_request, rejected, too_many_operations

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
        ApiError: 400, ``operations`` is no list of operations; 422, one of them does not apply.
    """
    if not isinstance(operations, list):
        word = "object" if isinstance(operations, dict) else "string"
        where = "Go value of type []handlers.jsonPatchOp"
        raise bad_request(f"error decoding patch: json: cannot unmarshal {word} into {where}")
    if len(operations) > MAX_OPERATIONS:
        raise too_many_operations(MAX_OPERATIONS, len(operations))
    document: Any = copy.deepcopy(target)
    for operation in operations:
        if not isinstance(operation, dict) or "op" not in operation:
            raise _unprocessable("each operation of a JSON patch needs an op and a path")
        document = _apply(document, operation)
    if not isinstance(document, dict):
        raise _unprocessable("the patched document is no object")
    return document


def _unprocessable(_why: str) -> ApiError:
    """kube-apiserver does not tell why."""
    return rejected()


def _apply(document: Any, operation: Json) -> Any:
    op, path = operation["op"], _tokens(operation.get("path", ""))
    if op == "test":
        if _resolve(document, path) != operation.get("value"):
            raise _unprocessable(f"testing path {operation.get('path')} failed")
        return document
    if op == "remove":
        _remove(document, path)
        return document
    if op in {"add", "replace"}:
        return _put(document, path, copy.deepcopy(operation.get("value")), op == "add")
    if op in {"move", "copy"}:
        source = _tokens(operation.get("from", ""))
        value = copy.deepcopy(_resolve(document, source))
        if op == "move":
            _remove(document, source)
        return _put(document, path, value, insert=True)
    raise _unprocessable(f"unexpected JSON patch operation {op!r}")


def _tokens(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise _unprocessable(f"JSON pointer {pointer!r} must start with a slash")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _resolve(document: Any, path: list[str]) -> Any:
    for token in path:
        if isinstance(document, dict) and token in document:
            document = document[token]
        elif isinstance(document, list):
            document = document[_position(document, token, len(document) - 1)]
        else:
            raise _unprocessable(f"missing path /{'/'.join(path)}")
    return document


def _position(items: list[Any], token: str, highest: int) -> int:
    if not token.isdigit() or int(token) > highest:
        raise _unprocessable(f"invalid array index {token} of {len(items)}")
    return int(token)


def _remove(document: Any, path: list[str]) -> None:
    if not path:
        raise _unprocessable("cannot remove the whole document")
    _resolve(document, path)
    holder = _resolve(document, path[:-1])
    if isinstance(holder, list):
        del holder[_position(holder, path[-1], len(holder) - 1)]
    else:
        del holder[path[-1]]


def _put(document: Any, path: list[str], value: Any, insert: bool) -> Any:
    if not path:
        return value
    holder, token = _resolve(document, path[:-1]), path[-1]
    if isinstance(holder, list):
        if insert:
            end = len(holder)
            holder.insert(end if token == "-" else _position(holder, token, end), value)  # noqa: S105
        else:
            holder[_position(holder, token, len(holder) - 1)] = value
    elif isinstance(holder, dict):
        if not insert and token not in holder:
            raise _unprocessable(f"replace operation does not apply: missing path {token}")
        holder[token] = value
    else:
        raise _unprocessable(f"add operation does not apply: /{'/'.join(path)}")
    return document
