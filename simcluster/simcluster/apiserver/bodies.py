"""Decodes request bodies into objects of their kinds."""

import json
from collections.abc import Mapping
from typing import Any

import yaml

from simcluster.apiserver import errors
from simcluster.apiserver.json_errors import json_error
from simcluster.apiserver.json_text import JsonError, load_json
from simcluster.apiserver.yaml_text import duplicate_keys, load_first_yaml
from simcluster.crds.apply_types import object_type
from simcluster.crds.schema import drop_nulls, unknown_fields
from simcluster.kinds.catalog import BY_KIND
from simcluster.kinds.resources import Resource
from simcluster.protobuf.decoding import MEDIA_TYPE, decode_protobuf
from simcluster.schema import (
    DecodingError,
    Problems,
    Struct,
    conform,
    json_word,
    num_keys,
    struct_of,
    type_of_kind,
)

Json = dict[str, Any]

_YAML = "application/yaml"
_BODY_TYPES = frozenset(("", "application/json", _YAML))
_SUMMARY_LENGTH = 30
_MAX_MANAGER_BYTES = 128
_DIRECTIVES = ("", "Ignore", "Strict", "Warn")
_SCHEME = "pkg/api/legacyscheme/scheme.go:30"
_META_SCHEME = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"


def type_of(resource: Resource) -> Struct | None:
    """The type of a resource's objects; ``None`` for custom resources."""
    return None if resource.custom else type_of_kind(resource.group, resource.kind)


_UNKNOWN_TYPE = object_type({})
_NO_TYPE = "couldn't get version/kind; json parse error: "


def apply_type_of(resource: Resource) -> Struct:
    """The type of a resource's objects as server-side apply sees it."""
    if resource.custom is not None:
        return resource.custom.apply_type
    return type_of(resource) or _UNKNOWN_TYPE


def check_options(query: Mapping[str, str], kind: str) -> None:
    """Refuse unknown values of ``dryRun`` and ``fieldValidation``, and a bad ``fieldManager``.

    Raises:
        ApiError: 422.
    """
    found = []
    dry_run, directive = query.get("dryRun"), query.get("fieldValidation", "")
    if dry_run not in {None, "All"}:
        found.append(errors.unsupported_value("dryRun", [dry_run], ("All",)))
    if directive not in _DIRECTIVES:
        found.append(errors.unsupported_value("fieldValidation", directive, _DIRECTIVES))
    found += _manager_errors(query.get("fieldManager", ""))
    if found:
        raise errors.invalid("meta.k8s.io", kind, "", found)


def _manager_errors(manager: str) -> list[errors.FieldError]:
    found = []
    if len(manager.encode(errors="replace")) > _MAX_MANAGER_BYTES:
        found.append(errors.too_long("fieldManager", _MAX_MANAGER_BYTES))
    position = 0
    for character in manager:
        if not character.isprintable():
            why = f"invalid character U+{ord(character):04X} (at position {position})"
            found.append(errors.invalid_value("fieldManager", manager, why))
        position += len(character.encode(errors="replace"))
    return found


def decode_body(body: bytes, content_type: str, kind: str = "") -> Json:
    """A body as an object; an empty body is an empty object.

    Raises:
        ApiError: 400 or 415.
    """
    if not body:
        return {}
    if content_type == MEDIA_TYPE:
        return decode_protobuf(body)
    if content_type not in _BODY_TYPES:
        raise errors.unsupported_media_type(("application/json", _YAML, MEDIA_TYPE))
    try:
        is_yaml = content_type == _YAML
        decoded = load_first_yaml(body) if is_yaml else load_json(body)
    except yaml.YAMLError as error:
        raise _unrecognized(yaml_error(error), body, kind) from error
    except JsonError as error:
        raise _unrecognized(_NO_TYPE + str(error), body, kind) from error
    if decoded is None:
        return {}
    if not isinstance(decoded, dict):
        target = (
            'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string '
            '"json:\\"kind,omitempty\\"" }'
        )
        why = f"json: cannot unmarshal {json_word(decoded)} into Go value of type {target}"
        raise _unrecognized(_NO_TYPE + why, body, kind)
    for key in ("apiVersion", "kind"):
        if not isinstance(decoded.get(key) or "", str):
            word = json_word(decoded[key])
            why = f"json: cannot unmarshal {word} into Go struct field .{key} of type string"
            raise _unrecognized(_NO_TYPE + why, body, kind)
    return decoded


def _unrecognized(why: str, body: bytes, kind: str) -> errors.ApiError:
    if not kind:
        return errors.bad_request(why)
    message = f"the object provided is unrecognized (must be of type {kind}): {why}"
    return errors.bad_request(f"{message} ({_summary(body)})")


def _empty(kind: str) -> errors.ApiError:
    return _unrecognized(_NO_TYPE + json_error(b""), b"", kind)


def yaml_error(error: yaml.YAMLError) -> str:
    """An error in YAML as a Go server words it; Go counts only the lines before the error."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return f"yaml: {error}"
    marks = [mark for mark in (error.context_mark, error.problem_mark) if mark and mark.line]
    where = ""
    if marks:
        where = f"line {marks[0].line + isinstance(error, yaml.scanner.ScannerError)}: "
    return f"yaml: {where}{error.problem}"


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    shown = body[:_SUMMARY_LENGTH]
    text = shown.decode(errors="replace") if body[:1] == b"{" else shown.hex()
    return f"{text} ..." if len(body) > _SUMMARY_LENGTH else text


def read_object(
    body: bytes, content_type: str, resource: Resource, directive: str
) -> tuple[Json, tuple[str, ...]]:
    """The object of a create or update request, and its warnings.

    Raises:
        ApiError: 400, it is no object of this kind, or it has unknown or duplicate fields and
            ``directive`` is Strict; 415.
    """
    obj = decode_body(body, content_type, resource.kind)
    if not body:
        raise _empty(resource.kind)
    _check_kind(obj, resource, body)
    unknown, count = _unknown_fields(obj, resource)
    owners = drop_duplicate_owners(obj)
    if directive == "Ignore":
        return obj, owners
    duplicates = _duplicates_in(body, content_type, count)
    fields = [f'unknown field "{path}"' for path in unknown]
    if directive == "Strict" and (duplicates or fields):
        if duplicates and content_type == _YAML:
            duplicates = ["\n  ".join(("yaml: unmarshal errors:", *duplicates))]
        kind = obj.get("kind") or resource.kind
        why = f"strict decoding error: {', '.join(duplicates + fields)}"
        raise errors.bad_request(_cannot_be_handled(kind, resource.version, resource.kind) + why)
    return obj, (*duplicates, *fields, *owners)


def _unknown_fields(obj: Json, resource: Resource) -> tuple[list[str], int]:
    """Make an object conform to its type; the paths of unknown fields, and the number of keys."""
    struct = type_of(resource)
    if struct is not None:
        kind = obj.get("kind") or resource.kind
        prefix = _cannot_be_handled(kind, resource.version, resource.kind)
        problems = _conformed(obj, struct, prefix)
        return problems.unknown, problems.num_keys
    count = num_keys(obj)
    try:
        unknown = conform_to(resource, obj)
    except DecodingError as error:
        prefix = _cannot_be_handled(resource.kind, resource.version, resource.kind)
        raise errors.bad_request(prefix + str(error)) from error
    drop_custom_nulls(resource, obj)
    return unknown, count


def drop_duplicate_owners(obj: Json) -> tuple[str, ...]:
    """Drop equal owner references, in place; returns the warning about them, if there are any."""
    metadata = obj.get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    if not metadata or not owners:
        return ()
    kept: list[Json] = []
    uids: list[str] = []
    for owner in owners:
        if owner not in kept:
            kept.append(owner)
        elif owner.get("uid", "") not in uids:
            uids.append(owner.get("uid", ""))
    if not uids:
        return ()
    metadata["ownerReferences"] = kept
    return (
        (
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner "
            "references in 1.20+, and may reject such requests as early as 1.24; please fix your "
            f"requests; duplicate UID(s) observed: {', '.join(uids)}"
        ),
    )


def drop_custom_nulls(resource: Resource, obj: Json) -> None:
    """Drop the nulls of a custom resource that its schema does not allow, in place."""
    if resource.custom is not None:
        drop_nulls(obj, resource.custom.schema)


def conform_to(resource: Resource, obj: Json) -> list[str]:
    """Make an object conform to its kind, in place; returns the paths of its unknown fields.

    Raises:
        DecodingError: a value is of the wrong type.
    """
    struct = type_of(resource)
    if struct is not None:
        return conform(obj, struct).unknown
    unknown = conform_metadata(obj)
    if resource.custom is not None:
        unknown += unknown_fields(obj, resource.custom.schema)
    return sorted(unknown)


def conform_metadata(obj: Json) -> list[str]:
    """Make the metadata of an object of unknown type conform to ``ObjectMeta``, in place.

    Returns:
        The paths of its unknown fields.

    Raises:
        DecodingError: a value is of the wrong type.
    """
    metadata, struct = obj.get("metadata"), struct_of("ObjectMeta")
    if metadata is None or struct is None:
        return []
    if not isinstance(metadata, dict):
        what = json_word(metadata)
        raise DecodingError(f"json: cannot unmarshal {what} into Go value of type v1.ObjectMeta")
    return [f"metadata.{path}" for path in conform(metadata, struct).unknown]


def read_part(body: bytes, content_type: str, kind: str, api_versions: tuple[str, ...]) -> Json:
    """The body of a request to a subresource, such as a ``Binding``.

    Args:
        body: of the request.
        content_type: of the body.
        kind: expected kind.
        api_versions: expected versions, the preferred one first.

    Raises:
        ApiError: 400, the body is no such object; 415.
    """
    obj = decode_body(body, content_type, kind)
    if not body:
        raise _empty(kind)
    found = obj.get("kind") or kind, obj.get("apiVersion") or api_versions[0]
    if found not in {(kind, version) for version in api_versions}:
        raise _other_kind(*found, kind, api_versions[0])
    _conformed(obj, struct_of(kind), _cannot_be_handled(kind, found[1], kind))
    return obj


def read_delete_options(body: bytes, content_type: str) -> Json:
    """The options in the body of a DELETE; none in an empty one.

    Raises:
        ApiError: 400, a value is of the wrong type or they are of another kind; 415.
    """
    options = decode_body(body, content_type)
    kind = options.get("kind") or "DeleteOptions"
    if kind != "DeleteOptions":
        version = options.get("apiVersion") or "v1"
        why = f'no kind "{kind}" is registered for version "{version}" in scheme'
        raise errors.bad_request(f'{why} "{_META_SCHEME}"')
    _conformed(options, struct_of("DeleteOptions"), "")
    return options


def _cannot_be_handled(kind: str, api_version: str, expected: str) -> str:
    version = api_version.rpartition("/")[2]
    return f'{kind} in version "{version}" cannot be handled as a {expected}: '


def _conformed(obj: Json, struct: Struct | None, prefix: str) -> Problems:
    """The problems of an object that conforms to its type now.

    Raises:
        ApiError: 400, a value is of the wrong type.
    """
    try:
        return Problems() if struct is None else conform(obj, struct)
    except DecodingError as error:
        raise errors.bad_request(prefix + str(error)) from error


def _check_kind(obj: Json, resource: Resource, body: bytes) -> None:
    if resource.custom is not None:
        _check_custom_kind(obj, resource, body)
        return
    kind, version = obj.get("kind") or resource.kind, obj.get("apiVersion") or resource.api_version
    if (version, kind) != (resource.api_version, resource.kind):
        raise _other_kind(str(kind), str(version), resource.kind, resource.api_version)


def _check_custom_kind(obj: Json, resource: Resource, body: bytes) -> None:
    """Refuse an object of another kind or version; custom resources must name both.

    Raises:
        ApiError: 400, the kind is missing or the version is another one; 422, another kind.
    """
    kind, version = obj.get("kind") or "", obj.get("apiVersion") or ""
    if not kind:
        why = f"Object 'Kind' is missing in '{body.decode(errors='replace')}'"
        raise _unrecognized(why, body, resource.kind)
    if version != resource.api_version:
        raise errors.bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({resource.api_version})"
        )
    check_custom_type(obj, resource)


def check_custom_type(obj: Json, resource: Resource) -> None:
    """Refuse a custom resource whose kind or apiVersion is not its resource's.

    Raises:
        ApiError: 422.
    """
    kind, version = obj.get("kind") or "", obj.get("apiVersion") or ""
    found = [
        errors.invalid_value(field, value, f"must be {expected}")
        for field, value, expected in (
            ("kind", kind, resource.kind),
            ("apiVersion", version, resource.api_version),
        )
        if value != expected
    ]
    if found:
        metadata = obj.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else ""
        group = version.rpartition("/")[0] if isinstance(version, str) else resource.group
        raise errors.invalid(group, kind, name or "", found)


def _other_kind(kind: str, version: str, expected: str, api_version: str) -> errors.ApiError:
    """400: an object of another kind, or of another version, than expected."""
    if (version, kind) in BY_KIND:
        short = version.rpartition("/")[2]
        group = api_version.rpartition("/")[0].partition(".")[0] or "core"
        why = f"converting ({short}.{kind}) to ({group}.{expected}): unknown conversion"
    else:
        why = f'no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"'
    return errors.bad_request(_cannot_be_handled(kind, version, expected) + why)


def _duplicates_in(body: bytes, content_type: str, count: int) -> list[str]:
    """Descriptions of the duplicate keys of a body whose object has ``count`` keys."""
    if content_type == _YAML:
        return duplicate_keys(body)
    if content_type == MEDIA_TYPE or body.count(b'":') == count:
        return []
    return duplicate_fields(body)


class _Pairs(dict[str, Any]):
    """An object that records its duplicate keys."""

    duplicates: tuple[str, ...] = ()


def _pairs(pairs: list[tuple[str, Any]]) -> _Pairs:
    found = _Pairs(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        found.duplicates = tuple(key for key in found if keys.count(key) > 1)
    return found


def duplicate_fields(body: bytes) -> list[str]:
    """``duplicate field "spec.x"`` for each duplicate key in the body."""
    try:
        decoded = json.loads(body, object_pairs_hook=_pairs)
    except ValueError:
        return []
    return [f'duplicate field "{path}"' for path in _duplicates(decoded, "")]


def _duplicates(value: Any, path: str) -> list[str]:
    found: list[str] = []
    if isinstance(value, _Pairs):
        prefix = f"{path}." if path else ""
        found += [prefix + key for key in value.duplicates]
        for key, inner in value.items():
            found += _duplicates(inner, prefix + key)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            found += _duplicates(inner, f"{path}[{position}]")
    return found
