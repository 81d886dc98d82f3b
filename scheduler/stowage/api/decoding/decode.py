"""Decodes the API server's JSON to structs.

There is one decoder per kind. The fast path is strict. What it refuses is decoded again by the
lenient path, which drops nulls (Go writes ``null`` for "not set") and reads JSON that a proxy
damaged as far as the standard library can. What that refuses becomes an `InvalidObject`, which
names the object, the field, the value and the expectation; one such object does not spoil its
page or its watch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from stowage.api.decoding.errors import InvalidObject, shown
from stowage.api.decoding.nesting import problem_of
from stowage.api.objects.custom import CustomObject
from stowage.api.objects.device import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from stowage.api.objects.meta import ApiStruct, ListMeta
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.pod_groups import CoschedulingPodGroup, PodGroup
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
from stowage.api.objects.workloads import ReplicaSet, ReplicationController, Service, StatefulSet

#: A struct of `stowage.api.objects`, or `CustomObject`.
ObjectT = TypeVar("ObjectT")
StructT = TypeVar("StructT", bound=ApiStruct)

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
        DeviceClass,
        ResourceClaim,
        ResourceClaimTemplate,
        ResourceSlice,
    )
}
"""Kubernetes' name of a kind -> its struct."""

#: Structs whose kind has another name than the class.
_KIND_NAMES: Mapping[type[object], str] = {CoschedulingPodGroup: "PodGroup"}
#: Kinds that keep parts of their JSON as it was sent; builtins are encoded for them first.
_WITH_RAW_JSON = (DeviceClass, ResourceClaim, ResourceClaimTemplate)

_REFUSAL = re.compile(r"(?P<problem>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?", re.DOTALL)
_PATH_STEP = re.compile(r"\.([^.\[\]]+)|\[(\.\.\.|\d+)\]")
#: Raised for bytes that are not JSON, not of the expected type, or nested too deep.
UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_TYPE_NAMES = {"null": "NoneType", "array": "list", "object": "dict"}


class WatchEvent(msgspec.Struct, Generic[ObjectT], frozen=True, gc=False):
    """A line of a watch: type ADDED, MODIFIED, DELETED or BOOKMARK, and the object.

    The object of a BOOKMARK has only ``metadata.resource_version``.
    """

    type: str
    object: ObjectT


class WatchError(msgspec.Struct, frozen=True, gc=False):
    """The error that ends a watch; `code` 410 means that a new list is needed."""

    code: int = 0
    reason: str = ""
    message: str = ""


class ObjectList(msgspec.Struct, Generic[ObjectT], frozen=True):
    """A page of a list; objects that cannot be decoded are in `invalid`."""

    metadata: ListMeta = ListMeta()
    items: list[ObjectT] = msgspec.field(default_factory=list)
    invalid: list[InvalidObject] = msgspec.field(default_factory=list)


class _ListHeader(msgspec.Struct, frozen=True):
    kind: str = ""
    metadata: ListMeta = ListMeta()


class _ListPage(msgspec.Struct, Generic[ObjectT], frozen=True, gc=False):
    kind: str = ""
    metadata: ListMeta = ListMeta()
    items: list[ObjectT] = msgspec.field(default_factory=list)


_decode_pod = msgspec.json.Decoder(Pod).decode


def decode_pod(data: bytes) -> Pod:
    """Decode a pod.

    Raises:
        InvalidObject: The bytes are not JSON, or a field has the wrong type.
    """
    try:
        return _decode_pod(data)
    except UNREADABLE:
        return _convert_leniently(Pod, _lenient_json(Pod.__name__, data))


def decode_object(kind: type[StructT], data: bytes) -> StructT:
    """Decode an object of a kind, e.g. ``decode_object(Node, data)``.

    Raises:
        InvalidObject: The bytes are not JSON, or a field has the wrong type.
    """
    try:
        decoded: StructT = _object_decoder(kind).decode(data)
        return decoded
    except UNREADABLE:
        return _convert_leniently(kind, _lenient_json(kind.__name__, data))


def decode_watch_event(kind: type[ObjectT], line: bytes) -> WatchEvent[ObjectT] | WatchError:
    """Decode a line of a watch on a kind.

    Raises:
        InvalidObject: The line is not JSON, or a field of its object has the wrong type.
    """
    try:
        event = _watch_decoder(kind).decode(line)  # type: ignore[arg-type]  # classes are hashable
    except UNREADABLE:
        return _decode_watch_event_leniently(kind, line)
    return event if event.type != "ERROR" else _decode_watch_event_leniently(kind, line)


def _decode_watch_event_leniently(
    kind: type[ObjectT], line: bytes
) -> WatchEvent[ObjectT] | WatchError:
    event_type, found = _event_parts(_lenient_json(kind.__name__, line))
    if event_type == "ERROR":
        return msgspec.convert(_cleaned(found), WatchError, strict=False)
    return WatchEvent(event_type, _convert_leniently(kind, found))


def decode_event_metadata(line: bytes) -> tuple[str, dict[str, str]]:
    """The type of a watch event and the texts in its object's metadata, which may be invalid.

    Empty if the line is not JSON.
    """
    try:
        event_type, found = _event_parts(_lenient_json("", line))
    except InvalidObject:
        return "", {}
    metadata = _cleaned(found).get("metadata") if isinstance(found, dict) else None
    texts = metadata.items() if isinstance(metadata, dict) else ()
    return event_type, {key: value for key, value in texts if isinstance(value, str)}


def _event_parts(event: Any) -> tuple[str, Any]:
    parts = event if isinstance(event, dict) else {}
    return str(parts.get("type", "")), parts.get("object")


def decode_list(kind: type[ObjectT], data: bytes) -> ObjectList[ObjectT]:
    """Decode a page of a list of a kind; invalid objects are returned apart.

    Raises:
        InvalidObject: The page itself is invalid, or a list of another kind.
    """
    try:
        page = _list_decoder(kind).decode(data)  # type: ignore[arg-type]  # classes are hashable
    except UNREADABLE:
        return _decode_list_leniently(kind, data)
    check_kind(kind, page.kind)
    return ObjectList(page.metadata, page.items)


def _decode_list_leniently(kind: type[ObjectT], data: bytes) -> ObjectList[ObjectT]:
    """Decode the objects one by one."""
    name = f"{kind.__name__}List"
    raw = _lenient_json(name, data)
    items = raw.pop("items", None) if isinstance(raw, dict) else None
    if not isinstance(items, list | None):
        raise InvalidObject(name, "", "items", shown(items), "array")
    header = _convert_leniently(_ListHeader, raw, name)
    check_kind(kind, header.kind)
    result: ObjectList[ObjectT] = ObjectList(header.metadata)
    for item in items or ():
        try:
            result.items.append(_convert_leniently(kind, item))
        except InvalidObject as invalid:
            result.invalid.append(invalid)
    return result


def decode_item(kind: type[ObjectT], data: bytes) -> ObjectT:
    """Decode one object of a list.

    Raises:
        InvalidObject: The bytes are not JSON, or a field has the wrong type.
    """
    try:
        item: ObjectT = _item_decoder(kind).decode(data)  # type: ignore[arg-type]  # classes are hashable
        return item
    except UNREADABLE:
        return _convert_leniently(kind, _lenient_json(kind.__name__, data))


def check_kind(kind: type[object], listed: str) -> None:
    """Refuse a list of another kind; ``kind`` may be missing, as all fields are optional.

    Raises:
        InvalidObject: The list is of another kind.
    """
    expected = f"{_KIND_NAMES.get(kind, kind.__name__)}List"
    if kind is not CustomObject and listed not in ("", "List", expected):
        raise InvalidObject(expected, "", "kind", shown(listed), expected)


def check_is_versioned(page: ObjectList[ObjectT]) -> None:
    """Check that a list has a resource version; the API server always sends one.

    Raises:
        InvalidObject: It has none.
    """
    if not page.metadata.resource_version:
        raise InvalidObject("List", "", "metadata.resourceVersion", '""', "a resource version")


def convert_object(kind: type[StructT], builtins: Mapping[str, Any]) -> StructT:
    """Convert dicts and lists, as from Kopf and YAML files, to an object of a kind.

    Raises:
        InvalidObject: A field has the wrong type.
    """
    try:
        if issubclass(kind, _WITH_RAW_JSON):
            return decode_object(kind, msgspec.json.encode(builtins))
        return msgspec.convert(builtins, kind)
    except msgspec.ValidationError:
        return _convert_leniently(kind, builtins)


@cache
def _object_decoder(kind: type[StructT]) -> msgspec.json.Decoder[StructT]:
    return msgspec.json.Decoder(kind)


@cache
def _watch_decoder(kind: type[ObjectT]) -> msgspec.json.Decoder[WatchEvent[ObjectT]]:
    return msgspec.json.Decoder(WatchEvent[kind], dec_hook=_custom)  # type: ignore[valid-type]  # msgspec takes a type made here


@cache
def _item_decoder(kind: type[ObjectT]) -> msgspec.json.Decoder[ObjectT]:
    return msgspec.json.Decoder(kind, dec_hook=_custom)


@cache
def _list_decoder(kind: type[ObjectT]) -> msgspec.json.Decoder[_ListPage[ObjectT]]:
    return msgspec.json.Decoder(_ListPage[kind], dec_hook=_custom)  # type: ignore[valid-type]  # msgspec takes a type made here


def _custom(kind: type[CustomObject], content: dict[str, Any]) -> CustomObject:
    """Make a `CustomObject`, which msgspec does not know."""
    return kind(content)


def decode_builtins(data: bytes) -> Any:
    """JSON as builtins; NaN and infinite numbers are accepted, and encoded again as null.

    Raises:
        InvalidObject: The bytes are not JSON.
    """
    return _lenient_json("", data)


def as_valid_json(data: bytes) -> bytes:
    """The same JSON for strict readers: NaN and infinite numbers become null.

    Raises:
        InvalidObject: The bytes are not JSON.
    """
    return msgspec.json.encode(decode_builtins(data))


def _lenient_json(kind: str, data: bytes) -> Any:
    """The JSON as builtins.

    Raises:
        InvalidObject: The bytes are not JSON.
    """
    with suppress(*UNREADABLE):
        return msgspec.json.decode(data)
    # The standard library accepts NaN and control characters.
    try:
        return json.loads(data.decode("utf-8-sig", errors="replace"), strict=False)
    except (ValueError, RecursionError) as error:
        text = data[:80].decode(errors="replace")
        raise InvalidObject(kind, "", "$", text, f"JSON; {problem_of(error)}") from error


def _convert_leniently(kind: type[ObjectT], builtins: Any, name: str = "") -> ObjectT:
    try:
        cleaned = _cleaned(builtins)
        if issubclass(kind, _WITH_RAW_JSON):
            return msgspec.json.decode(msgspec.json.encode(cleaned), type=kind)
        return msgspec.convert(cleaned, kind, dec_hook=_custom)
    except msgspec.ValidationError as error:
        raise _invalid(name or kind.__name__, builtins, error) from error
    except RecursionError as error:
        found, uid = _identity(builtins)
        raise InvalidObject(
            name or kind.__name__, found, "$", "", f"JSON; {problem_of(error)}", uid
        ) from error


def _cleaned(value: Any) -> Any:
    """A copy without nulls and without lone surrogates."""
    if isinstance(value, Mapping):
        return {_cleaned(key): _cleaned(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_cleaned(each) for each in value if each is not None]
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


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
    """All values at the path of a msgspec error, which omits list indices and dict keys."""
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
