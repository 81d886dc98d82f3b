"""From the API server's JSON to structs.

One decoder per kind, made once. The fast path is strict; what it refuses is decoded again without
its nulls, for Go writes ``null`` where it means "not set". What is still refused becomes an
`InvalidObject` that names the object, the field, the value and what was expected there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from stowage.api.decoding.damaged_json import (
    elements,
    is_balanced,
    members,
    mended,
    metadata_of,
    strings,
)
from stowage.api.decoding.errors import InvalidObject, shown
from stowage.api.objects.meta import ApiStruct, ListMeta
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.policy import PodDisruptionBudget, PriorityClass
from stowage.api.objects.volume import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from stowage.api.objects.workloads import (
    PodGroup,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

ObjectT = TypeVar("ObjectT", bound=ApiStruct)

KINDS: Mapping[str, type[ApiStruct]] = {
    kind.__name__: kind
    for kind in (
        Pod,
        Node,
        Namespace,
        PersistentVolume,
        PersistentVolumeClaim,
        StorageClass,
        CSINode,
        CSIDriver,
        CSIStorageCapacity,
        VolumeAttachment,
        PodDisruptionBudget,
        PriorityClass,
        Service,
        ReplicationController,
        ReplicaSet,
        StatefulSet,
        PodGroup,
    )
}
"""Kubernetes' name of a kind -> its struct."""

_REFUSAL = re.compile(r"(?P<problem>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?", re.DOTALL)
_PATH_STEP = re.compile(r"\.([^.\[\]]+)|\[(\.\.\.|\d+)\]")
#: What is raised for what is no JSON, or nested too deep.
_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_TYPE_NAMES = {"null": "NoneType", "array": "list", "object": "dict"}


class WatchEvent(msgspec.Struct, Generic[ObjectT], frozen=True, gc=False):
    """One line of a watch: type ADDED, MODIFIED, DELETED or BOOKMARK, and the object.

    A BOOKMARK's object has nothing but ``metadata.resource_version``.
    """

    type: str
    object: ObjectT


class WatchError(msgspec.Struct, frozen=True, gc=False):
    """How a watch ends when the API server gives up on it; `code` 410 asks for a new list."""

    code: int = 0
    reason: str = ""
    message: str = ""


class ObjectList(msgspec.Struct, Generic[ObjectT], frozen=True):
    """One page of a list; objects that cannot be used are set aside in `invalid`."""

    metadata: ListMeta = ListMeta()
    items: list[ObjectT] = msgspec.field(default_factory=list)
    invalid: list[InvalidObject] = msgspec.field(default_factory=list)


class _ListPage(msgspec.Struct, Generic[ObjectT], frozen=True, gc=False):
    kind: str = ""
    metadata: ListMeta = ListMeta()
    items: list[ObjectT] = msgspec.field(default_factory=list)


class _RawListPage(msgspec.Struct, frozen=True, gc=False):
    kind: str = ""
    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


class _RawWatchEvent(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")


_decode_raw_list = msgspec.json.Decoder(_RawListPage).decode
_decode_raw_watch_event = msgspec.json.Decoder(_RawWatchEvent).decode
_decode_pod = msgspec.json.Decoder(Pod).decode


def decode_pod(data: bytes) -> Pod:
    """Decode a pod.

    Raises:
        InvalidObject: The bytes are not JSON, or a field is not of its type.
    """
    try:
        return _decode_pod(data)
    except _UNREADABLE:
        return _decode_leniently(Pod, data)


def decode_object(kind: type[ObjectT], data: bytes) -> ObjectT:
    """Decode an object of a kind, e.g. ``decode_object(Node, data)``.

    Raises:
        InvalidObject: The bytes are not JSON, or a field is not of its type.
    """
    try:
        decoded: ObjectT = _object_decoder(kind).decode(data)
        return decoded
    except _UNREADABLE:
        return _decode_leniently(kind, data)


def decode_watch_event(kind: type[ObjectT], line: bytes) -> WatchEvent[ObjectT] | WatchError:
    """Decode one line of a watch on a kind.

    Raises:
        InvalidObject: The line is not JSON, or a field of its object is not of its type.
    """
    try:
        event = _watch_decoder(kind).decode(line)
        if event.type != "ERROR":
            return event
    except _UNREADABLE:
        pass  # the slow path below tells an error from an object with nulls from a bad object
    line = mended(line)
    try:
        raw = _decode_raw_watch_event(line)
    except _UNREADABLE as error:
        raise _unreadable(kind.__name__, line, error) from error
    if raw.type == "ERROR":
        return msgspec.convert(
            _without_nulls(msgspec.json.decode(raw.object)), WatchError, strict=False
        )
    return WatchEvent(raw.type, _decode_leniently(kind, bytes(raw.object)))


def decode_list(kind: type[ObjectT], data: bytes) -> ObjectList[ObjectT]:
    """Decode one page of a list of a kind; a bad object does not spoil the page.

    Raises:
        InvalidObject: The page itself is not what the API server sends, or of another kind.
    """
    try:
        page = _list_decoder(kind).decode(data)
        _check_kind(kind, page.kind)
        return ObjectList(page.metadata, page.items)
    except _UNREADABLE:
        pass  # the slow path below decodes the objects one by one
    listed, metadata, items = _raw_list(f"{kind.__name__}List", mended(data))
    _check_kind(kind, listed)
    result: ObjectList[ObjectT] = ObjectList(metadata)
    for item in items:
        try:
            result.items.append(decode_object(kind, bytes(item)))
        except InvalidObject as invalid:
            result.invalid.append(invalid)
    return result


def _check_kind(kind: type[ApiStruct], listed: str) -> None:
    """Refuse a list of something else, as far as it says what of: all its fields are optional."""
    expected = f"{kind.__name__}List"
    if listed not in ("", "List", expected):
        raise InvalidObject(expected, "", "kind", shown(listed), expected)


def check_is_versioned(page: ObjectList[ObjectT]) -> None:
    """Refuse a list without a resource version, such as ``{}``: an API server always says it.

    Raises:
        InvalidObject: it has none.
    """
    if not page.metadata.resource_version:
        raise InvalidObject("List", "", "metadata.resourceVersion", '""', "a resource version")


def convert_object(kind: type[ObjectT], builtins: Mapping[str, Any]) -> ObjectT:
    """Make an object of a kind from dicts and lists, as Kopf and YAML files give them.

    Raises:
        InvalidObject: A field is not of its type.
    """
    try:
        return msgspec.convert(builtins, kind)
    except msgspec.ValidationError:
        return _convert_leniently(kind, builtins)


@cache
def _object_decoder(kind: type[ObjectT]) -> msgspec.json.Decoder[ObjectT]:
    return msgspec.json.Decoder(kind)


@cache
def _watch_decoder(kind: type[ObjectT]) -> msgspec.json.Decoder[WatchEvent[ObjectT]]:
    return msgspec.json.Decoder(WatchEvent[kind])  # type: ignore[valid-type]


@cache
def _list_decoder(kind: type[ObjectT]) -> msgspec.json.Decoder[_ListPage[ObjectT]]:
    return msgspec.json.Decoder(_ListPage[kind])  # type: ignore[valid-type]


def _raw_list(kind: str, data: bytes) -> tuple[str, ListMeta, Iterable[bytes]]:
    """The kind of a page, its metadata and its objects, whatever these are."""
    try:
        raw = _decode_raw_list(data)
        return raw.kind, raw.metadata, map(bytes, raw.items or ())
    except _UNREADABLE as error:
        parts = members(data)
        # What is missing from a page that was cut off would count as gone.
        if "items" not in parts or not is_balanced(data):
            raise _unreadable(kind, data, error) from error
        try:
            metadata = msgspec.json.decode(parts.get("metadata", b"{}"), type=ListMeta)
        except _UNREADABLE:
            raise _unreadable(kind, data, error) from error
        return strings(data).get("kind", ""), metadata, elements(parts["items"])


def _decode_leniently(kind: type[ObjectT], data: bytes) -> ObjectT:
    data = mended(data)
    try:
        return _convert_leniently(kind, msgspec.json.decode(data))
    except _UNREADABLE as error:
        raise _unreadable(kind.__name__, data, error) from error


def _convert_leniently(kind: type[ObjectT], builtins: Any) -> ObjectT:
    meant = _without_nulls(builtins)
    try:
        return msgspec.convert(meant, kind)
    except msgspec.ValidationError as error:
        raise _invalid(kind.__name__, meant, error) from error


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_without_nulls(each) for each in value if each is not None]
    return value


def _unreadable(kind: str, data: bytes, error: Exception) -> InvalidObject:
    """Says what is wrong with JSON that is in order, else that it is not."""
    if isinstance(error, msgspec.ValidationError):
        try:
            return _invalid(kind, msgspec.json.decode(data), error)
        except _UNREADABLE as graver:
            error = graver
    name, uid = _identity({"metadata": metadata_of(data)})
    shown_data = data[:80].decode(errors="replace")
    return InvalidObject(kind, name, "$", shown_data, f"JSON; {error}", uid)


def _invalid(kind: str, value: Any, error: msgspec.ValidationError) -> InvalidObject:
    match = _REFUSAL.fullmatch(str(error))
    problem, path = (match["problem"], match["path"] or "") if match else (str(error), "")
    expected, _, got = problem.removeprefix("Expected ").partition(", got ")
    got = got.strip("`")
    steps = [key or index for key, index in _PATH_STEP.findall(path)]
    candidates = _found(value, steps, "")
    type_name = _TYPE_NAMES.get(got, got)
    field, found = next(
        (each for each in candidates if type(each[1]).__name__ == type_name), (path, got)
    )
    name, uid = _identity(value)
    return InvalidObject(kind, name, field.lstrip(".") or "$", shown(found), expected, uid)


def _found(value: Any, steps: list[str], path: str) -> Iterator[tuple[str, Any]]:
    """All values a refusal's path may mean; it names no list index and no dict key."""
    if not steps:
        yield path, value
    elif steps[0] == "..." and isinstance(value, dict):
        for key, each in value.items():
            yield from _found(each, steps[1:], f"{path}[{key}]")
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _found(each, steps[1:], f"{path}[{index}]")
    elif isinstance(value, dict) and steps[0] in value:
        yield from _found(value[steps[0]], steps[1:], f"{path}.{steps[0]}")


def _identity(value: Any) -> tuple[str, str]:
    metadata = value.get("metadata") if isinstance(value, Mapping) else None
    if not isinstance(metadata, Mapping):
        return "", ""
    namespace, name = metadata.get("namespace", ""), metadata.get("name", "")
    return f"{namespace}/{name}" if namespace else str(name), str(metadata.get("uid", ""))
