"""PATCH requests: which patch a content type means, applied to the current object."""

from typing import Any

import msgspec

from scheduler.cluster import errors
from scheduler.cluster.custom_schema import unknown_fields
from scheduler.cluster.event_conversion import to_core, to_events_v1
from scheduler.cluster.merge_patch import json_merge, json_patch
from scheduler.cluster.registry import Registry
from scheduler.cluster.resources import EVENTS_V1, Resource
from scheduler.cluster.store import Stored
from scheduler.cluster.strategic_merge import strategic_merge

Json = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
ACCEPTED = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH)


def check_content_type(resource: Resource, content_type: str) -> None:
    """Refuse a patch that is none of the three kinds; custom resources take but two.

    Raises:
        ApiError: 415.
    """
    accepted = ACCEPTED if resource.custom is None else ACCEPTED[:2]
    if content_type not in accepted:
        raise errors.unsupported_media_type(accepted)


def patched(obj: Json, content_type: str, patch: object) -> Json:
    """The object a patch makes of ``obj``, which stays as it is.

    Raises:
        ApiError: 400, 415 or 422.
    """
    if content_type == JSON_PATCH:
        return json_patch(obj, patch)
    if content_type not in ACCEPTED:
        raise errors.unsupported_media_type(ACCEPTED)
    if not isinstance(patch, dict):
        raise errors.bad_request("error decoding patch: expected an object")
    if content_type == MERGE_PATCH:
        merged: Json = json_merge(obj, patch)
        return merged
    return strategic_merge(obj, patch)


def patch_object(
    registry: Registry,
    resource: Resource,
    current: Stored,
    content_type: str,
    body: bytes,
    *,
    subresource: str = "",
    directive: str = "",
    dry_run: bool = False,
) -> Stored:
    """Patch an object, or its status, and store the result.

    Raises:
        ApiError: 400, 409, 415 or 422.
    """
    patch = _decoded(body)
    before = {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        **_shown(resource, current),
    }
    after = patched(before, content_type, patch)
    _check_identity(resource, current, after)
    _check_fields(resource, after, directive)
    after.pop("kind", None)
    after.pop("apiVersion", None)
    stored_shape = to_core(after) if resource is EVENTS_V1 else after
    fresh: Json = msgspec.json.decode(msgspec.json.encode(stored_shape))
    if subresource == "status":
        return registry.replace_status(resource, current, fresh, dry_run=dry_run)
    return registry.replace(resource, current, fresh, dry_run=dry_run)


def _check_fields(resource: Resource, after: Json, directive: str) -> None:
    if resource.custom is None or directive != "Strict":
        return
    unknown = unknown_fields(after, resource.custom.schema)
    if unknown:
        told = ", ".join(f'unknown field "{path}"' for path in unknown)
        shown = msgspec.json.encode(after).decode()
        error = errors.invalid_value("patch", shown, f"strict decoding error: {told}")
        raise errors.invalid("", "", "", [error])


def _decoded(body: bytes) -> object:
    try:
        patch: object = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise errors.bad_request(f"error decoding patch: {error}") from error
    return patch


def _shown(resource: Resource, current: Stored) -> Json:
    return to_events_v1(current.obj) if resource is EVENTS_V1 else current.obj


def _check_identity(resource: Resource, current: Stored, after: Json) -> None:
    if not isinstance(after.get("metadata"), dict):
        raise errors.invalid_object(resource, current.name, [errors.required("metadata.name")])
    if after.get("kind") != resource.kind or after.get("apiVersion") != resource.api_version:
        raise errors.bad_request("a patch cannot change kind or apiVersion")
    if after["metadata"].get("name") != current.name:
        raise errors.bad_request(
            f"the name of the object ({after['metadata'].get('name')}) does not match the name on "
            f"the URL ({current.name})"
        )
