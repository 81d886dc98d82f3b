"""``metadata`` of every kind: names, labels, annotations, owners and finalizers."""

from simcluster.apiserver import errors
from simcluster.kinds.resources import Resource
from simcluster.validation import names, rules
from simcluster.validation.names import NameCheck
from simcluster.validation.rules import Errors
from simcluster.values import Json

_ANNOTATIONS_LIMIT = 256 * 1024
_NAME_CHECKS: dict[str, NameCheck] = {
    "events": names.path_segment,
    "namespaces": names.dns_label,
    "services": names.dns_1035_label,
}
_STANDARD_FINALIZERS = frozenset(("kubernetes", "orphan", "foregroundDeletion"))
_CONFLICTING = {"orphan", "foregroundDeletion"}


def validate_metadata(resource: Resource, metadata: Json) -> list[errors.FieldError]:
    """Errors of a new object's metadata."""
    found: list[errors.FieldError] = []
    check = _NAME_CHECKS.get(resource.stored_in, names.dns_subdomain)
    if resource.has_path_names:
        check = names.path_segment
    if prefix := metadata.get("generateName"):
        trimmed = prefix[:-1] + "a" if prefix.endswith("-") and len(prefix) > 1 else prefix
        path = "metadata.generateName"
        found += [errors.invalid_value(path, prefix, message) for message in check(trimmed)]
    if name := metadata.get("name"):
        found += rules.named(name, check, "metadata.name")
    else:
        found.append(errors.required("metadata.name", "name or generateName is required"))
    return [*found, *_common(resource, metadata)]


def validate_metadata_update(
    resource: Resource, metadata: Json, before: Json
) -> list[errors.FieldError]:
    """Errors of a changed object's metadata."""
    found: list[errors.FieldError] = []
    added = set(metadata.get("finalizers") or ()) - set(before.get("finalizers") or ())
    if added and before.get("deletionTimestamp"):
        listed = ", ".join(f'"{finalizer}"' for finalizer in sorted(added))
        detail = (
            "no new finalizers can be added if the object is being deleted, found new "
            f"finalizers []string{{{listed}}}"
        )
        found.append(errors.forbidden_field("metadata.finalizers", detail))
    return [*found, *_common(resource, metadata)]


def _common(resource: Resource, metadata: Json) -> Errors:
    if labels := metadata.get("labels"):
        yield from validate_labels(labels, "metadata.labels")
    if annotations := metadata.get("annotations"):
        yield from validate_annotations(annotations, "metadata.annotations")
    if owners := metadata.get("ownerReferences"):
        yield from _owners(owners)
    if finalizers := metadata.get("finalizers"):
        yield from _finalizers(resource, finalizers)


def validate_labels(labels: Json, path: str) -> Errors:
    """Errors of labels found at ``path``."""
    for key, value in labels.items():
        yield from rules.named(key, names.qualified_name, path)
        yield from rules.named(value, names.label_value, path)


def validate_annotations(annotations: Json, path: str) -> Errors:
    """Errors of annotations found at ``path``."""
    for key in annotations:
        for message in names.qualified_name(key.lower()):
            yield errors.invalid_value(path, key, message)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _ANNOTATIONS_LIMIT:
        yield errors.too_long(path, _ANNOTATIONS_LIMIT)


def _owners(owners: list[Json]) -> Errors:
    path, controller = "metadata.ownerReferences", ""
    for owner in owners:
        version, kind = owner.get("apiVersion", ""), owner.get("kind")
        if not version.rpartition("/")[2] or version.count("/") > 1:
            yield errors.invalid_value(f"{path}.apiVersion", version, "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                yield errors.invalid_value(f"{path}.{field}", "", "must not be empty")
        if (version, kind) == ("v1", "Event"):
            yield errors.invalid_value(
                path, owner, "/v1, Kind=Event is disallowed from being an owner"
            )
        if not owner.get("controller"):
            continue
        if controller:
            detail = (
                'Only one reference can have Controller set to true. Found "true" in references '
                f"for {controller} and {kind}/{owner.get('name')}"
            )
            yield errors.invalid_value(path, owners, detail)
        else:
            controller = f"{kind}/{owner.get('name')}"


def _finalizers(resource: Resource, finalizers: list[str]) -> Errors:
    path = "metadata.finalizers"
    for finalizer in finalizers:
        yield from rules.named(finalizer, names.qualified_name, path)
    if set(finalizers) >= _CONFLICTING:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        yield errors.invalid_value(path, finalizers, detail)
    if resource.custom is not None or resource.group == "apiextensions.k8s.io":
        return
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    for position, finalizer in enumerate(finalizers):
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            yield errors.invalid_value(f"{path}[{position}]", finalizer, detail)
