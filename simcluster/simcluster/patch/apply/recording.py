"""Computes ``metadata.managedFields`` after a create, an update or an apply."""

from collections.abc import Callable, Hashable, Iterable
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from cachetools import LRUCache

from simcluster.patch.apply.field_sets import (
    NOTHING,
    SYSTEM_FIELDS,
    FieldSet,
    Path,
    compare,
    from_fields_v1,
    is_granular,
    new_fields,
    to_fields_v1,
    without_system_fields,
)
from simcluster.schema import Struct
from simcluster.store.managed_fields import (
    ManagedFields,
    Share,
    Shares,
    managed_fields_of_entries,
    managed_fields_since,
)
from simcluster.store.stored import encode

Json = dict[str, Any]
Recorder = Callable[[Json, Json | None, ManagedFields | None], ManagedFields | None]
"""Computes managedFields from an object after a write, the object before it and its managedFields;
neither object has them in its tree."""

BEFORE_FIRST_APPLY = "before-first-apply"


class Identity(NamedTuple):
    """A field manager; the identity of an applier does not include the API version."""

    manager: str
    operation: str
    api_version: str
    subresource: str


class Owned(NamedTuple):
    """The fields of one manager, their API version and the time of the last change."""

    fields: FieldSet
    api_version: str
    time: str


Managers = dict[Identity, Owned]


class Writer(NamedTuple):
    """The field manager of a write.

    Args:
        manager: ``fieldManager`` of the request, or its user agent.
        api_version: of the object that it sent.
        subresource: that it wrote; empty for the object itself.
        now: the time, as ``metav1.Time``.
        has_status: the status is written through its own subresource only.
        is_custom: of a custom resource, whose status subresource writes nothing but the status.
    """

    manager: str
    api_version: str
    subresource: str
    now: str
    has_status: bool = True
    is_custom: bool = False

    def identity(self, operation: str) -> Identity:
        """The identity of the manager for an operation: ``Apply`` or ``Update``."""
        version = "" if operation == "Apply" else self.api_version
        return Identity(self.manager, operation, version, self.subresource)

    def own(self, fields: AbstractSet[Path]) -> FieldSet:
        """The fields that this kind of write can change."""
        kept = without_system_fields(fields)
        if self.subresource == "status" and self.is_custom:
            return {path for path in kept if path[0] not in {"f:metadata", "f:spec"}}
        if self.subresource == "status":
            return {path for path in kept if path[0] != "f:spec"}
        if not self.has_status:
            return kept
        return {path for path in kept if path[0] != "f:status"}


def decode_managers(entries: list[Json]) -> Managers:
    """The managers that ``managedFields`` lists."""
    managed_fields = managed_fields_of_entries(entries)
    return {} if managed_fields is None else _managers(managed_fields.shares, managed_fields.times)


def encode_managers(managers: Managers) -> ManagedFields | None:
    """``managedFields`` as it is stored: appliers first, then by time and name."""
    return managed_fields_since(*_told(managers))


def _managers(shares: Shares, times: Iterable[str]) -> Managers:
    found: Managers = {}
    for share, time in zip(shares, times, strict=True):
        shown = "" if share.operation == "Apply" else share.api_version
        identity = Identity(share.manager, share.operation, shown, share.subresource)
        fields = from_fields_v1(msgspec.json.decode(share.fields))
        found[identity] = Owned(fields, share.api_version, time)
    return found


def _told(managers: Managers) -> tuple[Shares, tuple[str, ...]]:
    """The fields of each manager and their times, without managers that own nothing."""
    owning = [(identity, owned) for identity, owned in managers.items() if owned.fields]
    shares = tuple(
        _share(identity, owned.api_version, to_fields_v1(owned.fields))
        for identity, owned in owning
    )
    return shares, tuple(owned.time for _, owned in owning)


def _share(identity: Identity, api_version: str, fields: Json) -> Share:
    return Share(
        identity.operation, identity.manager, api_version, identity.subresource, encode(fields)
    )


_created: LRUCache[Hashable, Shares] = LRUCache(maxsize=256)
"""Results for equal creations: all pods of one template have the same fields."""


def record_create(obj: Json, struct: Struct, writer: Writer) -> ManagedFields | None:
    """All fields of a new object are its creator's."""
    key = (struct.name, writer._replace(now=""), _content(obj, struct))
    shares = _created.get(key)
    if shares is None:
        shares = _created[key] = _shares_of_new(obj, struct, writer)
    return managed_fields_since(shares, (writer.now,) * len(shares))


def _content(obj: Json, struct: Struct) -> bytes:
    """The content of an object that determines its fields."""
    types = struct.fields
    metadata = [
        (key, list(value) if isinstance(value, dict) else value)
        for key, value in obj["metadata"].items()
        if key not in SYSTEM_FIELDS
    ]
    rest = {
        # Of a value that is owned as a whole, only counts that it is there.
        key: value if is_granular(types.get(key, struct.others), value) else value in NOTHING
        for key, value in obj.items()
        if key not in {"metadata", "status"}
    }
    return encode((metadata, rest, "status" in obj and list(obj["status"])))


def _shares_of_new(obj: Json, struct: Struct, writer: Writer) -> Shares:
    fields = writer.own(new_fields(obj, struct))
    if not fields:
        return ()
    return (_share(writer.identity("Update"), writer.api_version, to_fields_v1(fields)),)


def record_update(
    obj: Json, before: Json, struct: Struct, writer: Writer, managed_fields: ManagedFields
) -> ManagedFields | None:
    """The fields that an update changed become its writer's."""
    is_of_status = writer.subresource == "status"
    changed, removed = compare(
        _compared(before, is_of_status), _compared(obj, is_of_status), struct
    )
    if not changed and not removed:
        return managed_fields
    if writer.subresource == "scale" and not _have_owners(changed, managed_fields):
        return managed_fields
    shares, sources = _shares_after(
        managed_fields.shares, frozenset(changed), frozenset(removed), writer._replace(now="")
    )
    times = managed_fields.times
    return managed_fields_since(
        shares, tuple([writer.now if source < 0 else times[source] for source in sources])
    )


def _have_owners(fields: FieldSet, managed_fields: ManagedFields) -> bool:
    """Whether a manager owns some of the fields; otherwise no writer of a scale becomes one."""
    return any(
        fields & from_fields_v1(msgspec.json.decode(share.fields))
        for share in managed_fields.shares
    )


@lru_cache(maxsize=1024)
def _shares_after(
    shares: Shares, changed: frozenset[Path], removed: frozenset[Path], writer: Writer
) -> tuple[Shares, tuple[int, ...]]:
    """The fields of each manager after an update, and the index of its time before the update.

    The index is -1 for the time of the update, so that equal updates at other times share a result.
    """
    managers = _managers(shares, map(str, range(len(shares))))
    identity, own = writer.identity("Update"), writer.own(changed)
    take(managers, identity, own, removed)
    old = managers.get(identity, Owned(set(), writer.api_version, ""))
    fields = (old.fields | own) - removed
    if own:
        managers[identity] = Owned(fields, writer.api_version, "-1")
    elif identity in managers:
        managers[identity] = old._replace(fields=fields)
    found, sources = _told(managers)
    return found, tuple(map(int, sources))


def take(
    managers: Managers,
    taker: Identity,
    changed: AbstractSet[Path],
    removed: AbstractSet[Path],
) -> None:
    """Take changed and removed fields from all other managers."""
    for identity, owned in managers.items():
        if identity != taker and owned.fields & (changed | removed):
            managers[identity] = owned._replace(fields=owned.fields - changed - removed)


def _compared(obj: Json, is_of_status: bool) -> Json:
    """The part of an object that a write may have changed."""
    if not is_of_status:
        return obj
    return {key: obj[key] for key in ("metadata", "status") if key in obj}
