"""What the server writes into ``metadata``, and what it refuses there."""

import random
import re
import uuid
from typing import Any

from scheduler.cluster.clock import Clock
from scheduler.cluster.errors import FieldError, bad_request, internal, invalid_value, required
from scheduler.cluster.resources import Resource

Json = dict[str, Any]

_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def new_uid() -> str:
    """A fresh ``metadata.uid``."""
    return str(uuid.uuid4())


def name_suffix() -> str:
    """Five characters, as ``generateName`` and controllers append."""
    return "".join(random.choices(_NAME_ALPHABET, k=5))  # noqa: S311  # names, not secrets


def check_addressed(resource: Resource, obj: Json, namespace: str, name: str) -> None:
    """Refuse a body whose kind, namespace or name contradicts the URL.

    Raises:
        ApiError: 400.
    """
    expected = resource.api_version
    version = obj.get("apiVersion") or expected
    kind = obj.get("kind") or resource.kind
    if (version, kind) != (expected, resource.kind):
        raise bad_request(
            f"{kind} in version {version!r} cannot be handled as a {resource.kind}"
            if version == expected
            else f"the API version in the data ({version}) does not match the expected API "
            f"version ({expected})"
        )
    metadata = obj.get("metadata")
    if metadata is None:
        metadata = obj["metadata"] = {}
    if not isinstance(metadata, dict):
        raise bad_request("metadata: expected an object")
    _check_place(metadata, namespace, name)


def _check_place(metadata: Json, namespace: str, name: str) -> None:
    if namespace and (metadata.get("namespace") or namespace) != namespace:
        raise bad_request(
            f"the namespace of the provided object does not match the namespace sent on the "
            f"request: {metadata['namespace']!r} is not {namespace!r}"
        )
    if name and (metadata.get("name") or name) != name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL "
            f"({name})"
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
        metadata["name"] = metadata["generateName"] + name_suffix()
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
    metadata.pop("managedFields", None)
    metadata.pop("selfLink", None)


def validate_name(resource: Resource, metadata: Json) -> list[FieldError]:
    """Errors of ``metadata.name``."""
    name = metadata.get("name")
    if not name:
        return [required("metadata.name", "name or generateName is required")]
    if resource.has_path_names and isinstance(name, str):
        return _validate_path_name(name)
    if not isinstance(name, str) or len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
        return [invalid_value("metadata.name", name, _SUBDOMAIN_RULE)]
    return []


def _validate_path_name(name: str) -> list[FieldError]:
    if name in {".", ".."}:
        return [invalid_value("metadata.name", name, f"may not be '{name}'")]
    return [
        invalid_value("metadata.name", name, f"may not contain '{illegal}'")
        for illegal in "/%"
        if illegal in name
    ]
