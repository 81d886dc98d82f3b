"""Claims of devices, their templates and statuses, and device classes."""

from collections.abc import Collection
from typing import Any

from simcluster.apiserver import errors
from simcluster.store.stored import encode
from simcluster.validation import device_parts as parts
from simcluster.validation import names, rules
from simcluster.validation.metadata import validate_annotations, validate_labels
from simcluster.validation.rules import Errors
from simcluster.validation.selectors import NODE_SELECTOR
from simcluster.values import Json
from stowage.api.values.resource_names import is_extended_resource_name

_MAX_ALTERNATIVES = 8
_MAX_CONSUMERS = 256
_MAX_CONDITIONS = 8
_MODES = ("All", "ExactCount")
_ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required"
_NOT_A_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)


def _class_name(request: Json, path: str) -> Errors:
    return rules.need_form("deviceClassName", names.dns_subdomain)(request, path)


def _mode(request: Json, path: str) -> Errors:
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "All" and count:
        detail = "must not be specified when allocationMode is 'All'"
        yield errors.invalid_value(f"{path}.count", count, detail)
    elif mode == "ExactCount" and count <= 0:
        yield errors.invalid_value(f"{path}.count", count, "must be greater than zero")
    elif mode not in _MODES:
        yield errors.unsupported_value(f"{path}.allocationMode", mode, _MODES)


_EXACT = (_class_name, parts.SELECTORS, _mode, parts.TOLERATIONS)
_NAME = parts.at("name", parts.label)
_ALTERNATIVES = (
    parts.each_item("firstAvailable", _NAME, *_EXACT, limit=_MAX_ALTERNATIVES),
    parts.unique("firstAvailable", parts.by_name, _MAX_ALTERNATIVES),
)


def _request(request: Json, path: str) -> Errors:
    yield from _NAME(request, path)
    has_exact, has_list = "exactly" in request, bool(request.get("firstAvailable"))
    if has_exact and has_list:
        detail = f"{_ONE_KIND}, but multiple fields are set"
        yield errors.invalid_value(path, None, detail)
    elif has_exact:
        yield from rules.check(request["exactly"], f"{path}.exactly", _EXACT)
    elif has_list:
        yield from rules.check(request, path, _ALTERNATIVES)
    else:
        yield errors.required(path, _ONE_KIND)


def _request_names(devices: Json) -> set[str]:
    """The names of requests, and ``request/subrequest``."""
    found = set()
    for request in devices.get("requests") or ():
        name = request.get("name", "")
        alternatives = request.get("firstAvailable") or ()
        found |= {name, *(f"{name}/{each.get('name', '')}" for each in alternatives)}
    return found


def _reference(known: Collection[str]) -> parts.ItemRule:
    def rule(name: str, path: str) -> Errors:
        segments = name.split("/")
        for segment in segments if len(segments) <= 2 else ():
            yield from parts.label(segment, path)
        if name not in known:
            yield errors.invalid_value(path, name, _NOT_A_REQUEST)

    return rule


def _references(obj: Json, path: str, known: Collection[str]) -> Errors:
    yield from parts.each_item("requests", _reference(known))(obj, path)
    yield from parts.unique("requests", str)(obj, path)


def _constraint(constraint: Json, path: str) -> Errors:
    fields = [field for field in ("matchAttribute", "distinctAttribute") if field in constraint]
    for field in fields[:1]:
        yield from parts.qualified_attribute(constraint[field], f"{path}.{field}")
    if not fields:
        detail = (
            'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple '
            "fields are set"
        )
        yield errors.required(path, detail)


def _devices(devices: Json, path: str) -> Errors:
    known = _request_names(devices)

    def refer(obj: Json, place: str) -> Errors:
        return _references(obj, place, known)

    yield from parts.each_item("requests", _request)(devices, path)
    yield from parts.unique("requests", parts.by_name)(devices, path)
    yield from parts.each_item("constraints", refer, _constraint)(devices, path)
    yield from parts.each_item("config", refer, parts.opaque)(devices, path)


_CLAIM_SPEC = rules.inside("spec", rules.inside("devices", _devices), always=True)


def _template_metadata(spec: Json, path: str) -> Errors:
    metadata = spec.get("metadata") or {}
    yield from validate_annotations(
        metadata.get("annotations") or {}, f"{path}.metadata.annotations"
    )
    yield from validate_labels(metadata.get("labels") or {}, f"{path}.metadata.labels")


def _spec_kept(new: Json, old: Json) -> Errors:
    if _comparable(new["spec"]) != _comparable(old["spec"]):
        yield errors.invalid_value("spec", new["spec"], rules.IMMUTABLE)


def _comparable(value: Any) -> Any:
    """A value in which opaque parameters are bytes, which is how the API server compares them."""
    if isinstance(value, dict):
        return {
            key: encode(inner) if key == "parameters" else _comparable(inner)
            for key, inner in value.items()
        }
    return [_comparable(item) for item in value] if isinstance(value, list) else value


def _extended_resource(spec: Json, path: str) -> Errors:
    name = spec.get("extendedResourceName")
    if name is not None and (not is_extended_resource_name(name) or names.qualified_name(name)):
        detail = "must be a valid extended resource name"
        yield errors.invalid_value(f"{path}.extendedResourceName", name, detail)


def _result(known: Collection[str]) -> parts.ItemRule:
    def rule(result: Json, path: str) -> Errors:
        yield from _reference(known)(result.get("request", ""), f"{path}.request")
        yield from _device_id(result, path)
        yield from parts.binding_conditions(result, path)
        yield from parts.TOLERATIONS(result, path)

    return rule


def _device_id(entry: Json, path: str) -> Errors:
    yield from parts.driver_name(entry.get("driver", ""), f"{path}.driver")
    yield from parts.pool_name(entry.get("pool", ""), f"{path}.pool")
    yield from parts.label(entry.get("device", ""), f"{path}.device")


def _allocation(allocation: Json, path: str, known: Collection[str]) -> Errors:
    def refer(obj: Json, place: str) -> Errors:
        return _references(obj, place, known)

    devices, place = allocation.get("devices") or {}, f"{path}.devices"
    source = rules.one_of("source", "FromClaim", "FromClass")
    config = (rules.need("source"), source, refer, parts.opaque)
    yield from parts.each_item("results", _result(known))(devices, place)
    yield from parts.each_item("config", *config, limit=2 * parts.MAX_ITEMS)(devices, place)
    yield from rules.inside("nodeSelector", *NODE_SELECTOR)(allocation, path)


def device_key(entry: Json) -> tuple[str, ...]:
    """What identifies a device, or a share of one, in a status."""
    return tuple(entry.get(field) or "" for field in ("driver", "pool", "device", "shareID"))


def _device_status(allocated: Collection[object]) -> parts.ItemRule:
    def rule(device: Json, path: str) -> Errors:
        yield from _device_id(device, path)
        if device_key(device) not in allocated:
            shown = "/".join(filter(None, device_key(device)))
            yield errors.invalid_value(path, shown, "must be an allocated device in the claim")
        conditions = device.get("conditions") or ()
        if len(conditions) > _MAX_CONDITIONS:
            place = f"{path}.conditions"
            yield errors.too_many(place, len(conditions), _MAX_CONDITIONS)
        if "data" in device:
            yield from parts.raw_object(device, f"{path}.data")

    return rule


_CONSUMER = (rules.need("resource"), rules.need("name"), rules.need("uid"))


def _consumers(new: Json, old: Json) -> Errors:
    status = new["status"]
    reserved, place = status.get("reservedFor") or [], "status.reservedFor"
    if not reserved:
        return
    if "allocation" not in status:
        detail = "may not be specified when `allocated` is not set"
        yield errors.forbidden_field(place, detail)
    elif new["metadata"].get("deletionTimestamp"):
        before = (old.get("status") or {}).get("reservedFor") or ()
        if any(consumer not in before for consumer in reserved):
            detail = (
                "new entries may not be added while `deallocationRequested` or "
                "`deletionTimestamp` are set"
            )
            yield errors.forbidden_field(place, detail)


def validate_claim_status(new: Json, old: Json) -> list[errors.FieldError]:
    """Errors of a change to the status of a claim."""
    status, before = new["status"], old.get("status") or {}
    allocation, known = status.get("allocation"), _request_names(new["spec"].get("devices") or {})
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    allocated, unlimited = {device_key(result) for result in results}, 10**9
    table = (
        parts.each_item("reservedFor", *_CONSUMER, limit=_MAX_CONSUMERS),
        parts.unique("reservedFor", lambda consumer: consumer.get("uid"), _MAX_CONSUMERS),
        parts.each_item("devices", _device_status(allocated), limit=unlimited),
        parts.unique("devices", device_key, unlimited),
    )
    found = [*rules.check(status, "status", table), *_consumers(new, old)]
    if allocation is None:
        return found
    if "allocation" not in before:
        return [*found, *_allocation(allocation, "status.allocation", known)]
    if _comparable(allocation) != _comparable(before["allocation"]):
        found.append(errors.invalid_value("status.allocation", allocation, rules.IMMUTABLE))
    return found


DEVICE_CLAIMS = {
    "resourceclaims.resource.k8s.io": rules.validation(
        _CLAIM_SPEC, after=(_spec_kept,), revalidates=False
    ),
    "resourceclaimtemplates.resource.k8s.io": rules.validation(
        rules.inside("spec", _template_metadata, _CLAIM_SPEC, always=True),
        after=(_spec_kept,),
        revalidates=False,
    ),
    "deviceclasses.resource.k8s.io": rules.validation(
        rules.inside(
            "spec", parts.SELECTORS, parts.each_item("config", parts.opaque), _extended_resource
        )
    ),
}
