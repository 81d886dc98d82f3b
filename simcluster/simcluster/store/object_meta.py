"""What the server writes into ``metadata``, and what it refuses there."""

import random
import uuid
from typing import Any

from simcluster.apiserver.errors import bad_request, internal
from simcluster.clock import Clock
from simcluster.kinds.resources import Resource
from simcluster.store.owners import Owners, owners_of_entries

Json = dict[str, Any]

_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_MAX_GENERATED_PREFIX = 58


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
    if metadata.get("resourceVersion"):
        raise internal("resourceVersion should not be set on objects to be created")
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][:_MAX_GENERATED_PREFIX] + name_suffix()
    if resource.namespaced:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    for owned_by_server in (
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "managedFields",
        "generation",
        "resourceVersion",
    ):
        metadata.pop(owned_by_server, None)
    metadata["uid"] = new_uid()
    metadata["creationTimestamp"] = clock.now()
    if resource.has_generation:
        metadata["generation"] = 1


def carry_over(new: Json, old: Json) -> None:
    """Keep what a client can never change through an update."""
    metadata, before = new["metadata"], old["metadata"]
    metadata["name"] = before["name"]
    for key in (
        "namespace",
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generateName",
        "resourceVersion",
    ):
        if key in before:
            metadata[key] = before[key]
        else:
            metadata.pop(key, None)
    metadata.pop("selfLink", None)


def take_owners(new: Json, owners: Owners | None, *, is_part: bool = False) -> Owners | None:
    """Take the managedFields out of what a client sends, and tell those that count from then on.

    They are what it sends, if it sends any, but for an update of a part; one empty entry stands
    for none.

    Args:
        new: the object it sends.
        owners: of the object as it is.
        is_part: it is an update of a part.
    """
    sent = new["metadata"].pop("managedFields", None)
    if sent == [{}]:
        return None
    return owners if is_part or not _are_owners(sent) else owners_of_entries(sent)


def _are_owners(entries: object) -> bool:
    """Whether these are managedFields that can be read; others are not listened to."""
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
