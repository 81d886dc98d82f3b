"""``metadata`` of every kind: names, labels, annotations, owners and finalizers."""

from typing import Any

from simcluster.apiserver.errors import (
    FieldError,
    forbidden_field,
    invalid_value,
    required,
    too_long,
)
from simcluster.kinds.resources import Resource
from simcluster.validation import names
from simcluster.validation.names import NameCheck

Json = dict[str, Any]

_ANNOTATIONS_LIMIT = 256 * 1024
_LABEL_NAMED = frozenset(("namespaces",))
_DNS_1035_NAMED = frozenset(("services",))
_STANDARD_FINALIZERS = frozenset(("kubernetes", "orphan", "foregroundDeletion"))
_CONFLICTING = {"orphan", "foregroundDeletion"}


def name_check(resource: Resource) -> NameCheck:
    """The form that names of a kind must have."""
    if resource.has_path_names:
        return names.path_segment
    if resource.stored_in in _LABEL_NAMED:
        return names.dns_label
    return names.dns_1035_label if resource.stored_in in _DNS_1035_NAMED else names.dns_subdomain


def validate_metadata(resource: Resource, metadata: Json) -> list[FieldError]:
    """Errors of a new object's metadata."""
    found: list[FieldError] = []
    check = name_check(resource)
    prefix = metadata.get("generateName")
    if prefix:
        trimmed = prefix[:-1] + "a" if prefix.endswith("-") and len(prefix) > 1 else prefix
        found += [
            invalid_value("metadata.generateName", prefix, message) for message in check(trimmed)
        ]
    name = metadata.get("name")
    if not name:
        found.append(required("metadata.name", "name or generateName is required"))
    else:
        found += [invalid_value("metadata.name", name, message) for message in check(name)]
    return found + _validate_common(metadata) + _validate_qualified(resource, metadata)


def _validate_qualified(resource: Resource, metadata: Json) -> list[FieldError]:
    """Errors of finalizers without a domain, which built-in kinds do not take."""
    if resource.custom is not None or resource.group == "apiextensions.k8s.io":
        return []
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid_value(f"metadata.finalizers[{position}]", finalizer, detail)
        for position, finalizer in enumerate(metadata.get("finalizers") or ())
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS
    ]


def validate_metadata_update(resource: Resource, metadata: Json, before: Json) -> list[FieldError]:
    """Errors of a changed object's metadata."""
    found: list[FieldError] = []
    if before.get("deletionTimestamp"):
        added = set(metadata.get("finalizers") or ()) - set(before.get("finalizers") or ())
        if added:
            listed = ", ".join(f'"{finalizer}"' for finalizer in sorted(added))
            detail = (
                "no new finalizers can be added if the object is being deleted, found new "
                f"finalizers []string{{{listed}}}"
            )
            found.append(forbidden_field("metadata.finalizers", detail))
    return found + _validate_common(metadata) + _validate_qualified(resource, metadata)


def _validate_common(metadata: Json) -> list[FieldError]:
    found: list[FieldError] = []
    if labels := metadata.get("labels"):
        found += validate_labels(labels, "metadata.labels")
    if annotations := metadata.get("annotations"):
        found += validate_annotations(annotations, "metadata.annotations")
    if owners := metadata.get("ownerReferences"):
        found += _validate_owners(owners)
    if finalizers := metadata.get("finalizers"):
        found += _validate_finalizers(finalizers)
    return found


def validate_labels(labels: Json, path: str) -> list[FieldError]:
    """Errors of labels found at ``path``."""
    found: list[FieldError] = []
    for key, value in labels.items():
        if messages := names.qualified_name(key):
            found += [invalid_value(path, key, message) for message in messages]
        if messages := names.label_value(value):
            found += [invalid_value(path, value, message) for message in messages]
    return found


def validate_annotations(annotations: Json, path: str) -> list[FieldError]:
    """Errors of annotations found at ``path``."""
    found = [
        invalid_value(path, key, message)
        for key in annotations
        for message in names.qualified_name(key.lower())
    ]
    if sum(len(key) + len(value) for key, value in annotations.items()) > _ANNOTATIONS_LIMIT // 4:
        size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
        if size > _ANNOTATIONS_LIMIT:
            found.append(too_long(path, _ANNOTATIONS_LIMIT))
    return found


def _validate_owners(owners: list[Json]) -> list[FieldError]:
    path, found, controller = "metadata.ownerReferences", [], ""
    for owner in owners:
        if not owner.get("apiVersion", "").rpartition("/")[2]:
            detail = "version must not be empty"
            found.append(invalid_value(f"{path}.apiVersion", owner.get("apiVersion", ""), detail))
        found += [
            invalid_value(f"{path}.{field}", "", "must not be empty")
            for field in ("kind", "name", "uid")
            if not owner.get(field)
        ]
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            detail = "/v1, Kind=Event is disallowed from being an owner"
            found.append(invalid_value(path, owner, detail))
        if owner.get("controller"):
            named = f"{owner.get('kind')}/{owner.get('name')}"
            if controller:
                detail = (
                    'Only one reference can have Controller set to true. Found "true" in '
                    f"references for {controller} and {named}"
                )
                found.append(invalid_value(path, owners, detail))
            else:
                controller = named
    return found


def _validate_finalizers(finalizers: list[str]) -> list[FieldError]:
    path = "metadata.finalizers"
    found = [
        invalid_value(path, finalizer, message)
        for finalizer in finalizers
        for message in names.qualified_name(finalizer)
    ]
    if set(finalizers) >= _CONFLICTING:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        found.append(invalid_value(path, finalizers, detail))
    return found
