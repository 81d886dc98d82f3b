"""Volumes of a pod, claims and persistent volumes."""

from collections.abc import Sequence
from typing import Any

from simcluster.apiserver.errors import (
    FieldError,
    duplicate_value,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from simcluster.validation import names
from simcluster.validation.differences import claim_difference
from simcluster.validation.selectors import validate_label_selector, validate_node_selector

Json = dict[str, Any]

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_NOT_SOURCES = frozenset(
    [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ]
)
_MORE_THAN_ONE = "may not specify more than 1 volume type"
_IMMUTABLE_CLAIM = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
    "bound claims"
)


def validate_volumes(volumes: Sequence[Json], path: str) -> list[FieldError]:
    """Errors of a pod's volumes."""
    found: list[FieldError] = []
    seen: set[str] = set()
    for position, volume in enumerate(volumes):
        place, name = f"{path}[{position}]", volume.get("name", "")
        sources = [key for key in volume if key != "name"]
        found += [forbidden_field(f"{place}.{source}", _MORE_THAN_ONE) for source in sources[1:]]
        if not sources:
            found.append(required(place, "must specify a volume type"))
        else:
            found += _validate_source(volume, sources[0], place)
        if not name:
            found.append(required(f"{place}.name"))
            continue
        found += [invalid_value(f"{place}.name", name, each) for each in names.dns_label(name)]
        if name in seen:
            found.append(duplicate_value(f"{place}.name", name))
        seen.add(name)
    return found


_REQUIRED_OF_SOURCE = {
    "hostPath": "path",
    "persistentVolumeClaim": "claimName",
    "configMap": "name",
    "secret": "secretName",
    "csi": "driver",
}


def _validate_source(volume: Json, kind: str, path: str) -> list[FieldError]:
    source = volume[kind]
    field = _REQUIRED_OF_SOURCE.get(kind)
    if field is not None and isinstance(source, dict) and not source.get(field):
        return [required(f"{path}.{kind}.{field}")]
    if kind == "emptyDir" and str(source.get("sizeLimit", "")).startswith("-"):
        detail = "SizeLimit field must be a valid resource quantity"
        return [forbidden_field(f"{path}.emptyDir.sizeLimit", detail)]
    return []


def _validate_modes(spec: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    modes = spec.get("accessModes") or []
    if not modes:
        found.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    found += [
        unsupported_value(f"{path}.accessModes", mode, _ACCESS_MODES)
        for mode in modes
        if mode not in _ACCESS_MODES
    ]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        detail = "may not use ReadWriteOncePod with other access modes"
        found.append(forbidden_field(f"{path}.accessModes", detail))
    if spec.get("volumeMode", "Filesystem") not in _VOLUME_MODES:
        found.append(unsupported_value(f"{path}.volumeMode", spec["volumeMode"], _VOLUME_MODES))
    return found


def _validate_storage(amounts: Json, path: str) -> list[FieldError]:
    amount = amounts.get("storage")
    if amount is None:
        return [required(path)]
    if amount == "0" or amount.startswith("-"):
        return [invalid_value(path, amount, "must be greater than zero")]
    return []


def _validate_class_name(spec: Json, path: str) -> list[FieldError]:
    name = spec.get("storageClassName")
    if not name:
        return []
    place = f"{path}.storageClassName"
    return [invalid_value(place, name, message) for message in names.dns_subdomain(name)]


def validate_claim(claim: Json) -> list[FieldError]:
    """Errors of a PersistentVolumeClaim."""
    spec = claim.get("spec") or {}
    found = validate_label_selector(spec.get("selector"), "spec.selector")
    found += _validate_modes(spec, "spec")
    requests = (spec.get("resources") or {}).get("requests") or {}
    found += _validate_storage(requests, "spec.resources[storage]")
    return found + _validate_class_name(spec, "spec")


def validate_claim_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a changed claim: it may be bound, and grow once it is."""
    found = validate_claim(new)
    spec, before = dict(new["spec"]), dict(old["spec"])
    if not before.get("volumeName"):
        before.pop("volumeName", None)
        spec.pop("volumeName", None)
    if not before.get("storageClassName") and "storageClassName" not in before:
        spec.pop("storageClassName", None)
    is_bound = (old.get("status") or {}).get("phase") == "Bound"
    if is_bound:
        for fields in (spec, before):
            fields["resources"] = {**(fields.get("resources") or {}), "requests": {}}
            fields.pop("volumeAttributesClassName", None)
    if spec != before:
        detail = f"{_IMMUTABLE_CLAIM}\n{claim_difference(before, spec)}"
        found.append(forbidden_field("spec", detail))
    return found


def validate_volume(volume: Json) -> list[FieldError]:
    """Errors of a PersistentVolume."""
    spec = volume.get("spec") or {}
    found = _validate_modes(spec, "spec")
    capacity = spec.get("capacity") or {}
    if not capacity:
        found.append(required("spec.capacity"))
    if "storage" not in capacity or len(capacity) > 1:
        keys = list(capacity)
        found.append(unsupported_value("spec.capacity", keys or capacity, ("storage",)))
    found += _validate_storage(capacity, "spec.capacity[storage]") if capacity else []
    policy = spec.get("persistentVolumeReclaimPolicy", "Retain")
    if policy not in _RECLAIM_POLICIES:
        place = "spec.persistentVolumeReclaimPolicy"
        found.append(unsupported_value(place, policy, _RECLAIM_POLICIES))
    node_selector = (spec.get("nodeAffinity") or {}).get("required")
    if node_selector is not None:
        found += validate_node_selector(node_selector, "spec.nodeAffinity.required")
    elif "local" in spec:
        found.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    sources = [field for field in spec if field not in _NOT_SOURCES]
    for source in sources[1:]:
        found.append(forbidden_field(f"spec.{source}", _MORE_THAN_ONE))
    if not sources:
        found.append(required("spec", "must specify a volume type"))
    return found + _validate_class_name(spec, "spec")


def validate_volume_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a changed volume: it stays with its source."""
    found = validate_volume(new)
    spec, before = new["spec"], old["spec"]
    if any(
        spec.get(field) != before.get(field)
        for field in {*spec, *before}
        if field not in _NOT_SOURCES
    ):
        detail = "spec.persistentvolumesource is immutable after creation"
        found.append(forbidden_field("spec.persistentvolumesource", detail))
    if spec.get("volumeMode") != before.get("volumeMode"):
        value = spec.get("volumeMode")
        found.append(invalid_value("spec.volumeMode", value, "field is immutable"))
    return found
