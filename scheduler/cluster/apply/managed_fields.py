"""``metadata.managedFields``: which manager owns which fields, after each kind of write."""

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from cachetools import LRUCache

from scheduler.cluster.apply.field_sets import (
    SYSTEM_FIELDS,
    FieldSet,
    compare,
    fields_v1_of_new,
    from_fields_v1,
    to_fields_v1,
    without_system_fields,
)
from scheduler.cluster.schema import Struct
from scheduler.cluster.stored import encode

Json = dict[str, Any]
Recorder = Callable[[Json, Json | None], list[Json] | None]
"""The managedFields of a new object, given the one before, if there was one."""

BEFORE_FIRST_APPLY = "before-first-apply"


class Identity(NamedTuple):
    """Who owns fields; appliers are the same in every version of the API."""

    manager: str
    operation: str
    api_version: str
    subresource: str


class Owned(NamedTuple):
    """The fields of one manager, in which version, since when."""

    fields: FieldSet
    api_version: str
    time: str


Managers = dict[Identity, Owned]


class Writer(NamedTuple):
    """Who writes.

    Args:
        manager: ``fieldManager`` of the request, or its user agent.
        api_version: of the object it sent.
        subresource: it wrote through; empty for the object itself.
        now: the time, as ``metav1.Time``.
        has_status: the status is written through its own subresource only.
    """

    manager: str
    api_version: str
    subresource: str
    now: str
    has_status: bool = True

    def identity(self, operation: str) -> Identity:
        """The manager as it is told apart from others."""
        version = "" if operation == "Apply" else self.api_version
        return Identity(self.manager, operation, version, self.subresource)

    def own(self, fields: FieldSet) -> FieldSet:
        """Without what this kind of write cannot touch."""
        kept = without_system_fields(fields)
        if self.subresource == "status":
            return {path for path in kept if path[0] != "f:spec"}
        if not self.has_status:
            return kept
        return {path for path in kept if path[0] != "f:status"}


def decode_managers(entries: list[Json]) -> Managers:
    """The managers that ``managedFields`` lists."""
    found: Managers = {}
    for entry in entries:
        operation, version = entry.get("operation", ""), entry.get("apiVersion", "")
        shown = "" if operation == "Apply" else version
        identity = Identity(
            entry.get("manager", ""), operation, shown, entry.get("subresource", "")
        )
        fields = from_fields_v1(entry.get("fieldsV1") or {})
        found[identity] = Owned(fields, version, entry.get("time", ""))
    return found


def encode_managers(managers: Managers) -> list[Json]:
    """``managedFields`` as it is stored: appliers first, then by time and name."""
    entries = []
    for identity, owned in managers.items():
        if not owned.fields:
            continue
        fields = to_fields_v1(owned.fields)
        entries.append(_entry(identity, owned.api_version, owned.time, fields))
    entries.sort(key=lambda e: (e["operation"], e["time"], e["manager"], e["apiVersion"]))
    return entries


def _entry(identity: Identity, api_version: str, time: str, fields: Json) -> Json:
    entry: Json = {
        "manager": identity.manager,
        "operation": identity.operation,
        "apiVersion": api_version,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    if identity.subresource:
        entry["subresource"] = identity.subresource
    return entry


_created: LRUCache[Hashable, list[Json]] = LRUCache(maxsize=256)
_updated: LRUCache[Hashable, list[Json]] = LRUCache(maxsize=1024)
"""What came of writes that were alike: a thousand pods of one template are written much the same
way. Entries are shared by the objects that have them, as nobody changes them."""


def record_create(obj: Json, struct: Struct, writer: Writer) -> list[Json]:
    """All fields of a new object are its creator's."""
    key = (struct.name, writer, _content(obj))
    entries = _created.get(key)
    if entries is None:
        entries = _created[key] = _entries_of_new(obj, struct, writer)
    return entries


def _content(obj: Json) -> bytes:
    """All of an object that its fields can be told from."""
    metadata = [
        (key, list(value) if isinstance(value, dict) else value)
        for key, value in obj["metadata"].items()
        if key not in SYSTEM_FIELDS
    ]
    rest = {key: value for key, value in obj.items() if key not in {"metadata", "status"}}
    return encode((metadata, rest, "status" in obj and list(obj["status"])))


def _entries_of_new(obj: Json, struct: Struct, writer: Writer) -> list[Json]:
    fields = fields_v1_of_new(obj, struct)
    if writer.has_status:
        fields.pop("f:status", None)
    if not fields:
        return []
    return [_entry(writer.identity("Update"), writer.api_version, writer.now, fields)]


def record_update(obj: Json, before: Json, struct: Struct, writer: Writer) -> list[Json] | None:
    """What an update changed becomes its writer's; ``None`` where nothing is tracked.

    ``obj`` has the managedFields that count until then.
    """
    entries: list[Json] | None = obj["metadata"].get("managedFields")
    if not entries:
        return None
    is_of_status = writer.subresource == "status"
    changed, removed = compare(
        _compared(before, is_of_status), _compared(obj, is_of_status), struct
    )
    if not changed and not removed:
        return entries
    key = (writer, encode(entries), frozenset(changed), frozenset(removed))
    found = _updated.get(key)
    if found is None:
        found = _updated[key] = _entries_after(entries, changed, removed, writer)
    return found


def _entries_after(
    entries: list[Json], changed: FieldSet, removed: FieldSet, writer: Writer
) -> list[Json]:
    managers = decode_managers(entries)
    identity = writer.identity("Update")
    take(managers, identity, writer.own(changed), removed)
    old = managers.get(identity, Owned(set(), writer.api_version, ""))
    fields = (old.fields | writer.own(changed)) - removed
    if fields != old.fields:
        managers[identity] = Owned(fields, writer.api_version, writer.now)
    return encode_managers(managers)


def take(managers: Managers, taker: Identity, changed: FieldSet, removed: FieldSet) -> None:
    """Others lose what was changed or removed."""
    for identity, owned in managers.items():
        if identity != taker and owned.fields & (changed | removed):
            managers[identity] = owned._replace(fields=owned.fields - changed - removed)


def _compared(obj: Json, is_of_status: bool) -> Json:
    """What a write may have changed of an object, without what it does not own."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    if is_of_status:
        return {"metadata": metadata, **({"status": obj["status"]} if "status" in obj else {})}
    return {**obj, "metadata": metadata}
