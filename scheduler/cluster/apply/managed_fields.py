"""``metadata.managedFields``: which manager owns which fields, after each kind of write."""

from collections.abc import Callable
from typing import Any, NamedTuple

from scheduler.cluster.apply.field_sets import (
    FieldSet,
    compare,
    fields_v1_of_new,
    from_fields_v1,
    to_fields_v1,
    without_system_fields,
)
from scheduler.cluster.schema import Struct

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


def record_create(obj: Json, struct: Struct, writer: Writer) -> list[Json]:
    """All fields of a new object are its creator's."""
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
    entries = obj["metadata"].get("managedFields")
    if not entries:
        return None
    changed, removed = compare(_without_entries(before), _without_entries(obj), struct)
    if not changed and not removed:
        return list(entries)
    managers = decode_managers(entries)
    take(managers, writer.identity("Update"), writer.own(changed), removed)
    identity = writer.identity("Update")
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


def _without_entries(obj: Json) -> Json:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}
