"""Applies PATCH requests to the current object, by the kind of patch that they carry."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import yaml

from simcluster.apiserver import errors
from simcluster.apiserver.bodies import (
    apply_type_of,
    check_custom_type,
    conform_to,
    drop_custom_nulls,
    drop_duplicate_owners,
    duplicate_fields,
    type_of,
    yaml_error,
)
from simcluster.apiserver.event_conversion import to_core, to_events_v1
from simcluster.apiserver.json_text import JsonError, load_json
from simcluster.apiserver.yaml_text import duplicate_keys, load_first_yaml
from simcluster.kinds.resources import EVENTS_V1, SCALES, Resource
from simcluster.kinds.subresources.scale import part_of_scale, scale_of, set_scale
from simcluster.kinds.warnings import warnings_on_create, warnings_on_update
from simcluster.patch.apply import Writer, apply
from simcluster.patch.apply.field_sets import MissingKeyError
from simcluster.patch.apply.typing import listed, typing_errors
from simcluster.patch.merge_patch import json_merge, json_patch, unknown_keys
from simcluster.patch.strategic_merge import go_text, strategic_merge
from simcluster.schema import DecodingError, Struct, conform, json_word, num_keys, struct_of
from simcluster.store.registry import DIRECT, Registry, WriteOptions
from simcluster.store.store import Stored

Json = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
ACCEPTED = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)
ACCEPTED_OF_CUSTOM = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)


class PatchRequest(NamedTuple):
    """A patch and how it is applied.

    Args:
        content_type: the kind of patch.
        body: the patch.
        writer: returns the field manager.
        subresource: ``status``, or empty for the object itself.
        directive: how unknown fields are treated: Strict, Warn or Ignore.
        force: an apply takes fields from other managers.
        options: how the result is written.
    """

    content_type: str
    body: bytes
    writer: Callable[[], Writer]
    subresource: str = ""
    directive: str = ""
    force: bool = False
    options: WriteOptions = DIRECT


class Patched(NamedTuple):
    """The result of a patch.

    Args:
        stored: the object.
        warnings: about its fields.
        is_created: the object did not exist before.
    """

    stored: Stored
    warnings: tuple[str, ...] = ()
    is_created: bool = False


def check_content_type(resource: Resource, content_type: str) -> None:
    """Refuse unknown kinds of patches; custom resources have no strategic merge patches.

    Raises:
        ApiError: 415.
    """
    accepted = ACCEPTED if resource.custom is None else ACCEPTED_OF_CUSTOM
    if content_type not in accepted:
        raise errors.unsupported_media_type(accepted)


def decode_patch(content_type: str, body: bytes) -> object:
    """The JSON of a patch.

    Raises:
        ApiError: 400.
    """
    try:
        patch = load_json(body)
    except JsonError as error:
        prefix = "" if content_type == STRATEGIC_MERGE_PATCH else "error decoding patch: "
        raise errors.bad_request(f"{prefix}{error}") from error
    if content_type == MERGE_PATCH and patch is None:
        raise errors.bad_request("Invalid JSON Patch")
    if content_type != JSON_PATCH and not isinstance(patch, dict):
        word = json_word(patch)
        prefix = "error decoding patch: " if content_type == MERGE_PATCH else ""
        target = "Go value of type map[string]interface {}"
        raise errors.bad_request(f"{prefix}json: cannot unmarshal {word} into {target}")
    return patch


def patched(obj: Json, content_type: str, patch: Any, struct: Struct | None) -> Json:
    """The object after a patch; ``obj`` is not changed.

    Raises:
        ApiError: 400 or 422.
    """
    if content_type == JSON_PATCH:
        return json_patch(obj, patch)
    if content_type == MERGE_PATCH:
        merged: Json = json_merge(obj, patch)
        return merged
    return strategic_merge(obj, patch, struct)


def patch_object(
    registry: Registry, resource: Resource, current: Stored, request: PatchRequest
) -> Patched:
    """Patch an object, or its status, and store the result.

    Raises:
        ApiError: 400, 409, 415 or 422.
    """
    patch = decode_patch(request.content_type, request.body)
    obj = current.whole if _may_name_owners(request) else current.obj
    shown = to_events_v1(obj) if resource is EVENTS_V1 else obj
    before = {"kind": resource.kind, "apiVersion": resource.api_version, **shown}
    struct = type_of(resource)
    after = patched(before, request.content_type, patch, struct)
    _check_has_kind(resource, request, after)
    fresh, unknown = _conformed(before, after, request, resource)
    warnings = _strict_errors(request, patch, unknown)
    if warnings and request.directive == "Strict":
        why = f"strict decoding error: {', '.join(warnings)}"
        raise _invalid_patch(request, after, why)
    _check_identity(resource, fresh)
    warnings += drop_duplicate_owners(fresh)
    stored_shape = to_core(fresh) if resource is EVENTS_V1 else fresh
    stored = _store(registry, resource, current, stored_shape, request)
    return Patched(stored, warnings + warnings_on_update(resource, stored.obj, current.obj))


def _may_name_owners(request: PatchRequest) -> bool:
    """Whether the patch may read or change the managedFields; few patches do.

    JSON patches read whole objects, and errors of JSON and merge patches show the whole result.
    """
    is_strategic = request.content_type == STRATEGIC_MERGE_PATCH
    return not is_strategic or b"managedFields" in request.body or b"\\u" in request.body


def _store(
    registry: Registry, resource: Resource, current: Stored, obj: Json, request: PatchRequest
) -> Stored:
    registry.check_address(resource, current.namespace, current.name, obj)
    replace = registry.replacement(request.subresource)
    return replace(resource, current, obj, request.options)


def _conformed(
    before: Json, after: Json, request: PatchRequest, resource: Resource
) -> tuple[Json, list[str]]:
    """A copy of the result that conforms to its type, and its unknown fields.

    Fields that the patch did not touch conform already. A status patch does not even copy them,
    because only the status and the metadata of its result are stored.
    """
    touched = {key: value for key, value in after.items() if value is not before.get(key)}
    rest = {key: value for key, value in after.items() if key not in touched}
    touched = _decoded_again(touched)
    if request.subresource == "status":
        rest["metadata"] = dict(rest.get("metadata") or {})
    else:
        rest = _decoded_again(rest)
    try:
        unknown = conform_to(resource, touched)
        drop_custom_nulls(resource, touched)
    except DecodingError as error:
        raise _invalid_patch(request, after, str(error)) from error
    return {**rest, **touched}, unknown


def _strict_errors(request: PatchRequest, patch: object, unknown: list[str]) -> tuple[str, ...]:
    if request.directive == "Ignore":
        return ()
    found: list[str] = []
    if request.content_type == JSON_PATCH:
        found = unknown_keys(patch)
    elif request.body.count(b'":') != num_keys(patch):
        found = duplicate_fields(request.body)
    return (*found, *(f'unknown field "{path}"' for path in unknown))


def _invalid_patch(request: PatchRequest, obj: Json, why: str) -> errors.ApiError:
    if request.content_type == STRATEGIC_MERGE_PATCH:
        shown = go_text(load_json(request.body))
    else:
        shown = msgspec.json.encode(obj, order="sorted").decode()
    return errors.invalid("", "", "", [errors.invalid_value("patch", shown, why)])


def check_patched(obj: Json, kind: str) -> None:
    """Make a patched part of an object, such as its ``Scale``, conform to its type, in place.

    Raises:
        ApiError: 422, a value is of the wrong type.
    """
    struct = struct_of(kind)
    if struct is None:
        return
    try:
        conform(obj, struct)
    except DecodingError as error:
        shown = msgspec.json.encode(obj).decode()
        why = errors.invalid_value("patch", shown, str(error))
        raise errors.invalid("", "", "", [why]) from error


def _check_has_kind(resource: Resource, request: PatchRequest, after: Json) -> None:
    """Refuse a patch that removes the kind of a custom resource."""
    if resource.custom is not None and not after.get("kind"):
        shown = msgspec.json.encode(after, order="sorted").decode()
        raise _invalid_patch(request, after, f"Object 'Kind' is missing in '{shown}'")


def _check_identity(resource: Resource, after: Json) -> None:
    if resource.custom is not None:
        check_custom_type(after, resource)
        return
    kind, version = after.get("kind", ""), after.get("apiVersion", "")
    if (kind, version) != (resource.kind, resource.api_version):
        raise errors.bad_request(
            f'{kind} in version "{version}" cannot be handled as a {resource.kind}'
        )


def apply_object(
    registry: Registry,
    resource: Resource,
    address: tuple[str, str],
    current: Stored | None,
    request: PatchRequest,
) -> Patched:
    """Apply a configuration to an object, or create the object.

    Args:
        registry: stores the object.
        resource: its kind.
        address: its namespace and name.
        current: the current object; ``None`` if it does not exist.
        request: the apply patch.

    Raises:
        ApiError: 400, 409, 422 or 500.
    """
    config = _configuration(resource, request)
    uid = config["metadata"].get("uid")
    if current is None and uid:
        why = (
            f"uid mismatch: the provided object specified uid {uid}, and no existing object was "
            "found"
        )
        raise errors.conflict(resource, address[1], why)
    struct = apply_type_of(resource)
    live = None if current is None else current.whole
    if live is not None and resource is EVENTS_V1:
        live = to_events_v1(live)
    try:
        applied = apply(live, config, struct, request.writer(), force=request.force)
    except MissingKeyError as error:
        raise errors.internal(_untyped(resource, config, str(error))) from error
    fresh: Json = msgspec.json.decode(msgspec.json.encode(applied.obj))
    if (known := type_of(resource)) is not None:
        conform(fresh, known)
    stored_shape = to_core(fresh) if resource is EVENTS_V1 else fresh
    registry.check_address(resource, *address, stored_shape)
    options = request.options._replace(recorder=lambda _new, _old, _owners: applied.managed_fields)
    duplicates = _duplicate_keys(request, config)
    if current is not None:
        kept = request._replace(options=options)
        stored = _store(registry, resource, current, stored_shape, kept)
        return Patched(stored, duplicates + warnings_on_update(resource, stored.obj, current.obj))
    stored_shape["metadata"].pop("resourceVersion", None)
    stored = registry.create(resource, address[0], stored_shape, options)
    told = duplicates + warnings_on_create(resource, stored.obj)
    return Patched(stored, told, is_created=True)


def apply_scale(
    registry: Registry, resource: Resource, current: Stored, request: PatchRequest
) -> Stored:
    """Apply a ``Scale`` to a workload, or to a custom resource with a scale subresource.

    Raises:
        ApiError: 400; 409, other managers own the replicas; 422 or 500.
    """
    scale = _configuration(SCALES, request)
    scale["metadata"].setdefault("name", current.name)
    registry.check_address(resource, current.namespace, current.name, scale)
    part, struct = part_of_scale(resource, scale), apply_type_of(resource)
    applied = apply(current.whole, part, struct, request.writer(), force=request.force)
    if not part:
        scale = scale_of(resource, current)
    options = request.options._replace(recorder=lambda _new, _old, _owners: applied.managed_fields)
    return set_scale(registry, resource, current, scale, options)


def _duplicate_keys(request: PatchRequest, config: Json) -> tuple[str, ...]:
    """Warnings about the duplicate keys of a configuration.

    Raises:
        ApiError: 400, there are some, and fieldValidation is Strict.
    """
    # kubectl sends JSON, whose keys are quickly counted.
    is_clean = request.body[:1] == b"{" and request.body.count(b'":') == num_keys(config)
    if request.directive == "Ignore" or is_clean:
        return ()
    found = duplicate_keys(request.body)
    if found and request.directive == "Strict":
        why = "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:"
        raise errors.bad_request("\n  ".join((why, *found)))
    return tuple(found)


def _configuration(resource: Resource, request: PatchRequest) -> Json:
    try:
        config = load_first_yaml(request.body)
    except yaml.YAMLError as error:
        why = f"error converting YAML to JSON: {yaml_error(error)}"
        raise errors.bad_request(f"error decoding YAML: {why}") from error
    config = {} if config is None else config
    if not isinstance(config, dict):
        word = json_word(config)
        raise errors.bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot "
            f"unmarshal {word} into Go value of type map[string]interface {{}}"
        )
    version, kind = config.get("apiVersion") or "", config.get("kind") or ""
    if (version, kind) != (resource.api_version, resource.kind):
        group = version if "/" in str(version) else f"/{version}"
        raise errors.bad_request(f"invalid object type: {group}, Kind={kind}")
    metadata = config.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise errors.bad_request("metadata.managedFields must be nil")
    named = _decoded_again(config)
    config = _decoded_again(config)
    _check_typed(resource, config)
    kept: Json = _only_named(config, named)
    kept.setdefault("metadata", {})
    return kept


def _only_named(value: Any, named: Any) -> Any:
    """The conformed configuration without the fields that decoding filled in."""
    if isinstance(value, dict) and isinstance(named, dict):
        return {key: _only_named(value[key], named[key]) for key in value if key in named}
    if isinstance(value, list) and isinstance(named, list):
        return [_only_named(*pair) for pair in zip(value, named, strict=False)]
    return value


def _decoded_again(config: Json) -> Json:
    """A copy that consists of JSON's types only."""
    copied: Json = msgspec.json.decode(msgspec.json.encode(config))
    return copied


def _check_typed(resource: Resource, config: Json) -> None:
    """Refuse unknown fields and wrong types, whatever the fieldValidation."""
    if found := typing_errors(config, apply_type_of(resource)):
        raise errors.internal(_untyped(resource, config, listed(found)))
    try:
        conform_to(resource, config)
    except DecodingError as error:
        raise errors.internal(_untyped(resource, config, str(error))) from error


def _untyped(resource: Resource, config: Json, why: str) -> str:
    metadata = config.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    namespace, name = metadata.get("namespace") or "", metadata.get("name") or ""
    group = f"{resource.group}/" if resource.group else "/"
    place = f"{namespace}/{name}; {group}{resource.version}, Kind={resource.kind}"
    return f"failed to create typed patch object ({place}): {why}"
