"""Volumes of a pod, claims and persistent volumes."""

from simcluster.apiserver import errors
from simcluster.validation import names, rules
from simcluster.validation.differences import claim_difference
from simcluster.validation.rules import Errors
from simcluster.validation.selectors import LABEL_SELECTOR, NODE_SELECTOR
from simcluster.values import Json
from stowage.api.values.quantity import quantity_nano_value

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_NOT_SOURCES = frozenset(
    (
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    )
)
_MORE_THAN_ONE = "may not specify more than 1 volume type"
_IMMUTABLE_CLAIM = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
    "bound claims"
)
_REQUIRED_OF_SOURCE = {
    "hostPath": "path",
    "persistentVolumeClaim": "claimName",
    "configMap": "name",
    "secret": "secretName",
    "csi": "driver",
}


def _source(volume: Json, path: str) -> Errors:
    kinds = [key for key in volume if key != "name"]
    for kind in kinds[1:]:
        yield errors.forbidden_field(f"{path}.{kind}", _MORE_THAN_ONE)
    if not kinds:
        yield errors.required(path, "must specify a volume type")
        return
    kind, source = kinds[0], volume[kinds[0]]
    field = _REQUIRED_OF_SOURCE.get(kind)
    if field is not None and isinstance(source, dict) and not source.get(field):
        yield errors.required(f"{path}.{kind}.{field}")
    elif kind == "emptyDir" and str(source.get("sizeLimit", "")).startswith("-"):
        detail = "SizeLimit field must be a valid resource quantity"
        yield errors.forbidden_field(f"{path}.emptyDir.sizeLimit", detail)


pod_volumes = rules.each(
    "volumes",
    _source,
    rules.need_form("name", names.dns_label),
    rules.Distinct("name", counts_empty=False),
)


def _access_modes(spec: Json, path: str) -> Errors:
    modes, place = spec.get("accessModes") or [], f"{path}.accessModes"
    if not modes:
        yield errors.required(place, "at least 1 access mode is required")
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield errors.unsupported_value(place, mode, _ACCESS_MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        yield errors.forbidden_field(place, "may not use ReadWriteOncePod with other access modes")


def _storage(amounts: Json, path: str) -> Errors:
    amount = amounts.get("storage")
    if amount is None:
        yield errors.required(path)
    elif amount == "0" or amount.startswith("-"):
        yield errors.invalid_value(path, amount, "must be greater than zero")


def _request(spec: Json, path: str) -> Errors:
    requests = (spec.get("resources") or {}).get("requests") or {}
    return _storage(requests, f"{path}.resources[storage]")


def _capacity(spec: Json, path: str) -> Errors:
    capacity, place = spec.get("capacity") or {}, f"{path}.capacity"
    if not capacity:
        yield errors.required(place)
    if "storage" not in capacity or len(capacity) > 1:
        yield errors.unsupported_value(place, list(capacity) or capacity, ("storage",))
    if capacity:
        yield from _storage(capacity, f"{place}[storage]")


def _node_affinity(spec: Json, path: str) -> Errors:
    affinity = spec.get("nodeAffinity") or {}
    yield from rules.inside("required", *NODE_SELECTOR)(affinity, f"{path}.nodeAffinity")
    if affinity.get("required") is None and "local" in spec:
        yield errors.required(f"{path}.nodeAffinity", "Local volume requires node affinity")


def _sources(spec: Json, path: str) -> Errors:
    sources = [field for field in spec if field not in _NOT_SOURCES]
    for source in sources[1:]:
        yield errors.forbidden_field(f"{path}.{source}", _MORE_THAN_ONE)
    if not sources:
        yield errors.required(path, "must specify a volume type")


_MODES = (_access_modes, rules.one_of("volumeMode", "Block", "Filesystem"))
_CLASS = rules.has_form("storageClassName", names.dns_subdomain)
_CLAIM = rules.inside(
    "spec", rules.inside("selector", *LABEL_SELECTOR), *_MODES, _request, _CLASS, always=True
)
_VOLUME = rules.inside(
    "spec",
    *_MODES,
    _capacity,
    rules.one_of("persistentVolumeReclaimPolicy", "Delete", "Recycle", "Retain"),
    _node_affinity,
    _sources,
    _CLASS,
    always=True,
)


def _claim_kept(new: Json, old: Json) -> Errors:
    """A claim may be bound, and may grow once it is."""
    spec, before = dict(new["spec"]), dict(old["spec"])
    if not before.get("volumeName"):
        before.pop("volumeName", None)
        spec.pop("volumeName", None)
    if "storageClassName" not in before:
        spec.pop("storageClassName", None)
    if (old.get("status") or {}).get("phase") == "Bound":
        for fields in (spec, before):
            fields["resources"] = {**(fields.get("resources") or {}), "requests": {}}
            fields.pop("volumeAttributesClassName", None)
    if spec != before:
        detail = f"{_IMMUTABLE_CLAIM}\n{claim_difference(before, spec)}"
        yield errors.forbidden_field("spec", detail)


def _not_below_capacity(new: Json, old: Json) -> Errors:
    """A claim shrinks only to what is more than the capacity that it has."""
    size, before = _requested(new), _requested(old)
    capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
    if size < before and size <= quantity_nano_value(capacity):
        field = "spec.resources.requests.storage"
        yield errors.forbidden_field(field, "field can not be less than status.capacity")


def _requested(claim: Json) -> int:
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return quantity_nano_value(requests.get("storage", "0"))


def _source_kept(new: Json, old: Json) -> Errors:
    sources = [
        {key: value for key, value in obj["spec"].items() if key not in _NOT_SOURCES}
        for obj in (new, old)
    ]
    if sources[0] != sources[1]:
        detail = "spec.persistentvolumesource is immutable after creation"
        yield errors.forbidden_field("spec.persistentvolumesource", detail)


VOLUMES = {
    "persistentvolumeclaims": rules.validation(_CLAIM, after=(_claim_kept, _not_below_capacity)),
    "persistentvolumes": rules.validation(
        _VOLUME, after=(_source_kept, rules.fixed("spec.volumeMode"))
    ),
}
