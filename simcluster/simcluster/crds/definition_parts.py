"""Validation of the parts of a definition besides its schemas.

Follows ``validation.go`` of apiextensions-apiserver. The internal version, which is validated, has
what is the same in all versions in one place, right below the spec.
"""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from simcluster.apiserver.errors import FieldError, invalid_value, required, unsupported_value
from simcluster.validation import names as forms

Json = dict[str, Any]

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = (
    *("byte", "date", "date-time", "double", "float", "int32", "int64"),
    "password",
)
_STRATEGIES = ("None", "Webhook")
_SIMPLE_PATH = "must be a simple json path starting with ."
_LONGEST_WARNING = 256
_MIXED_CASE = "may have mixed case, but should otherwise match: "


def group_errors(group: str) -> Iterator[FieldError]:
    """Errors of the API group."""
    field = "spec.group"
    if not group:
        yield required(field)
    elif found := forms.dns_subdomain(group):
        yield invalid_value(field, group, ",".join(found))
    elif "." not in group:
        yield invalid_value(field, group, "should be a domain with at least one dot")


def names_errors(names: Json) -> Iterator[FieldError]:
    """Errors of the names of the kind."""
    field = "spec.names"
    for key in ("plural", "singular", "kind", "listKind"):
        if not names.get(key):
            yield required(f"{field}.{key}")
    for key in ("plural", "singular"):
        yield from _label_errors(f"{field}.{key}", names.get(key) or "")
    for key in ("kind", "listKind"):
        for found in _label_errors(f"{field}.{key}", (names.get(key) or "").lower()):
            _, _, rule = found.message.rpartition(": a DNS-1035")
            detail = f"{_MIXED_CASE}a DNS-1035{rule}"
            yield invalid_value(f"{field}.{key}", names[key], detail)
    for index, name in enumerate(names.get("shortNames") or ()):
        yield from _label_errors(f"{field}.shortNames[{index}]", name)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        why = "kind and listKind may not be the same"
        yield invalid_value(f"{field}.listKind", names["listKind"], why)
    for index, name in enumerate(names.get("categories") or ()):
        yield from _label_errors(f"{field}.categories[{index}]", name)


def _label_errors(field: str, name: str) -> Iterator[FieldError]:
    if name and (found := forms.dns_1035_label(name)):
        yield invalid_value(field, name, ",".join(found))


def version_name_errors(field: str, name: str) -> Iterator[FieldError]:
    """Errors of the name of a version."""
    if found := forms.dns_1035_label(name):
        yield invalid_value(field, name, ",".join(found))


def count_errors(versions: list[Json] | None) -> Iterator[FieldError]:
    """Errors of the versions together: their names, and the one that is stored."""
    listed = versions or []
    shown = None if versions is None else [_shown(version) for version in listed]
    if len({version.get("name") for version in listed}) < len(listed):
        yield invalid_value("spec.versions", shown, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in listed) != 1:
        why = "must have exactly one version marked as storage version"
        yield invalid_value("spec.versions", shown, why)


def _shown(version: Json) -> Json:
    """A version as errors show it, without its parts."""
    return {
        "Name": version.get("name") or "",
        "Served": bool(version.get("served")),
        "Storage": bool(version.get("storage")),
        "Deprecated": bool(version.get("deprecated")),
        "DeprecationWarning": version.get("deprecationWarning"),
        **dict.fromkeys(("Schema", "Subresources", "AdditionalPrinterColumns")),
        "SelectableFields": None,
    }


def deprecation_errors(version: Json, field: str) -> Iterator[FieldError]:
    """Errors of the warning of a deprecated version."""
    warning = version.get("deprecationWarning")
    if warning is not None and not version.get("deprecated"):
        why = "can only be set for deprecated versions"
        yield invalid_value(f"{field}.deprecationWarning", warning, why)
    elif (wrong := _warning_error(warning)) is not None:
        yield invalid_value(f"{field}.deprecationWarning", warning, wrong)


def _warning_error(warning: str | None) -> str | None:
    if warning is None:
        return None
    if len(warning.encode()) > _LONGEST_WARNING:
        return f"must be <= {_LONGEST_WARNING} characters long"
    if not warning:
        return "must not be an empty string"
    position = next((at for at, each in enumerate(warning) if not each.isprintable()), None)
    if position is None:
        return None
    index = len(warning[:position].encode())
    why = "must only contain printable UTF-8 characters; non-printable character found at index "
    return f"{why}{index}"


def are_same(values: list[Any]) -> bool:
    """Whether the internal version has the values of all versions in one place."""
    return bool(values) and all(value == values[0] for value in values)


def part_errors(versions: list[Json]) -> Iterator[FieldError]:
    """Errors of the scale subresources and of the columns of all versions."""
    yield from _in_place(versions, "subresources", _subresource_errors)
    yield from _in_place(versions, "additionalPrinterColumns", _column_errors)


def _in_place(
    versions: list[Json], key: str, check: Callable[[Any, str], Iterator[FieldError]]
) -> Iterator[FieldError]:
    parts = [version.get(key) for version in versions]
    if are_same(parts):
        yield from check(parts[0], f"spec.{key}")
        return
    for index, part in enumerate(parts):
        yield from check(part, f"spec.versions[{index}].{key}")


def _subresource_errors(below: Json | None, field: str) -> Iterator[FieldError]:
    scale = (below or {}).get("scale")
    for key, part in (("specReplicasPath", "spec"), ("statusReplicasPath", "status")):
        if scale is None:
            break
        path, place = scale.get(key) or "", f"{field}.scale.{key}"
        if not path:
            yield required(place)
        elif not path.startswith("."):
            yield invalid_value(place, path, _SIMPLE_PATH)
        elif not path.startswith(f".{part}."):
            yield invalid_value(place, path, f"should be a json path under .{part}")
    labels = (scale or {}).get("labelSelectorPath") or ""
    if labels and not labels.startswith("."):
        yield invalid_value(f"{field}.scale.labelSelectorPath", labels, _SIMPLE_PATH)


def _column_errors(columns: list[Json] | None, field: str) -> Iterator[FieldError]:
    for index, column in enumerate(columns or ()):
        place = f"{field}[{index}]"
        if not column.get("name"):
            yield required(f"{place}.name")
        type_, format_ = column.get("type") or "", column.get("format") or ""
        choices = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not type_:
            yield required(f"{place}.type", choices)
        elif type_ not in _COLUMN_TYPES:
            yield invalid_value(f"{place}.type", type_, choices)
        if format_ and format_ not in _COLUMN_FORMATS:
            why = f"must be one of {','.join(_COLUMN_FORMATS)}"
            yield invalid_value(f"{place}.format", format_, why)
        if not column.get("jsonPath"):
            yield required(f"{place}.JSONPath")
        elif not column["jsonPath"].startswith("."):
            yield invalid_value(f"{place}.JSONPath", column["jsonPath"], _SIMPLE_PATH)


def conversion_errors(spec: Json) -> Iterator[FieldError]:
    """Errors of the conversion between versions."""
    conversion, field = spec.get("conversion") or {}, "spec.conversion"
    strategy = conversion.get("strategy") or ""
    if strategy and strategy not in _STRATEGIES:
        yield unsupported_value(f"{field}.strategy", strategy, _STRATEGIES)
    webhook = conversion.get("webhook") or {}
    if strategy == "Webhook" and not webhook.get("clientConfig"):
        why = "required when strategy is set to Webhook"
        yield required(f"{field}.webhookClientConfig", why)
    if strategy == "Webhook" and not webhook.get("conversionReviewVersions"):
        yield required(f"{field}.conversionReviewVersions")


def approval_errors(metadata: Json, group: str) -> Iterator[FieldError]:
    """Errors of the annotation that a new definition in a group of Kubernetes needs."""
    if not f".{group}".endswith((".k8s.io", ".kubernetes.io")):
        return
    annotation = "api-approved.kubernetes.io"
    approval = (metadata.get("annotations") or {}).get(annotation) or ""
    place, see = f"metadata.annotations[{annotation}]", "see https://github.com/kubernetes/"
    needed = f'protected groups must have approval annotation "{annotation}"'
    if not approval:
        yield required(place, f"{needed}, {see}enhancements/pull/1111")
    elif not approval.startswith("unapproved") and not all(urlsplit(approval)[:2]):
        why = f'{needed} with either a URL or a reason starting with "unapproved"'
        yield invalid_value(place, approval, f"{why}, {see}enhancements/pull/1111")


def last_errors(definition: Json, stored: list[str] | None) -> Iterator[FieldError]:
    """Errors of the stored versions and of the deprecated way to preserve unknown fields."""
    if not stored:
        yield invalid_value("status.storedVersions", None, "must have at least one stored version")
    if definition["spec"].get("preserveUnknownFields"):
        why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
        place = "spec.preserveUnknownFields"
        yield invalid_value(place, True, f"{why}spec.versions[*].schema instead")
