"""The part of ``metadata`` that the API server writes, and what it refuses there."""

import random
import uuid
from collections.abc import Iterable
from typing import Any

from simcluster.apiserver.errors import FieldError, bad_request, internal, invalid_value
from simcluster.clock import Clock
from simcluster.kinds.resources import Resource
from simcluster.store.managed_fields import ManagedFields, managed_fields_of_entries

Json = dict[str, Any]

_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_MAX_GENERATED_PREFIX = 58
_SET_BY_SERVER = (
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
    "generation",
    "resourceVersion",
)
_KEPT_ON_UPDATE = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "resourceVersion",
)


def new_uid() -> str:
    """A fresh ``metadata.uid``."""
    return str(uuid.uuid4())


def name_suffix() -> str:
    """Five characters, as ``generateName`` and controllers append."""
    return "".join(random.choices(_NAME_ALPHABET, k=5))  # noqa: S311  # names, not secrets


def check_addressed(resource: Resource, obj: Json, namespace: str) -> None:
    """Give a body a ``metadata``, and refuse one of another namespace than the URL's.

    Raises:
        ApiError: 400.
    """
    metadata = obj.get("metadata")
    if metadata is None:
        metadata = obj["metadata"] = {}
    if not isinstance(metadata, dict):
        raise bad_request("metadata: expected an object")
    if resource.namespaced and (metadata.get("namespace") or namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def fill_on_create(resource: Resource, obj: Json, namespace: str, clock: Clock) -> None:
    """Fill the metadata of a new object: name, namespace, uid, creation time and generation.

    Raises:
        ApiError: 500, the object came with a resourceVersion.
    """
    metadata = obj["metadata"]
    revision = metadata.get("resourceVersion") or ""
    if revision.isascii() and revision.isdigit() and int(revision):
        raise internal("resourceVersion should not be set on objects to be created")
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][:_MAX_GENERATED_PREFIX] + name_suffix()
    if resource.namespaced:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    for key in _SET_BY_SERVER:
        metadata.pop(key, None)
    metadata["uid"] = new_uid()
    metadata["creationTimestamp"] = clock.now()
    if resource.has_generation:
        metadata["generation"] = 1


def keep_fields(target: Json, source: Json, keys: Iterable[str]) -> None:
    """Give ``target`` these keys as ``source`` has them, or has them not."""
    for key in keys:
        if key in source:
            target[key] = source[key]
        else:
            target.pop(key, None)


def carry_over(new: Json, old: Json) -> None:
    """Keep the metadata that a client can never change through an update."""
    keep_fields(new["metadata"], old["metadata"], _KEPT_ON_UPDATE)
    new["metadata"].pop("selfLink", None)


def immutable_metadata_errors(new: Json, old: Json) -> list[FieldError]:
    """Errors of metadata that a client set to another value, though it never changes."""
    found = []
    metadata, before = new["metadata"], old["metadata"]
    for key in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds"):
        value = metadata.get(key)
        is_ignored = key == "deletionTimestamp" and key in before
        if value is not None and value != before.get(key) and not is_ignored:
            found.append(invalid_value(f"metadata.{key}", value, "field is immutable"))
    return found


def take_managed_fields(
    new: Json, managed_fields: ManagedFields | None, *, is_part: bool = False
) -> ManagedFields | None:
    """Take the managedFields out of an object that a client sends; returns those that hold now.

    The ones that the client sends replace the current ones, except in an update of a part. One
    empty entry removes them.

    Args:
        new: the object that the client sends.
        managed_fields: of the current object.
        is_part: the client updates a part of the object.
    """
    sent = new["metadata"].pop("managedFields", None)
    if sent == [{}]:
        return None
    return managed_fields if is_part or not _are_owners(sent) else managed_fields_of_entries(sent)


def _are_owners(entries: object) -> bool:
    """Whether these are well-formed managedFields; others are ignored."""
    return (
        isinstance(entries, list)
        and bool(entries)
        and all(
            isinstance(entry, dict)
            and entry.get("operation") in {"Apply", "Update"}
            and entry.get("fieldsType") == "FieldsV1"
            and isinstance(entry.get("fieldsV1"), dict)
            for entry in entries
        )
    )
