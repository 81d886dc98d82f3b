"""Slices of a driver's pool of devices."""

import re
from collections.abc import Iterable
from fractions import Fraction

from simcluster.apiserver import errors
from simcluster.validation import device_parts as parts
from simcluster.validation import names, rules
from simcluster.validation.device_parts import MAX_ITEMS, MAX_TAINTS
from simcluster.validation.rules import Errors
from simcluster.validation.selectors import NODE_SELECTOR
from simcluster.values import Json
from stowage.api.values.quantity import parse_quantity

_MAX_DEVICES = 128
_MAX_DEVICES_WITH_EXTRAS = 64
_MAX_COUNTER_SETS = 8
_MAX_CONSUMED_SETS = 2
_MAX_VALUE = 64
_MAX_OPTIONS = 10
_SLICE_FIELDS = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_OF_SLICE = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)
_ONE_OF_DEVICE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_ONLY_PER_DEVICE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set "
    "to true in the ResourceSlice spec"
)
_NUMBER, _WORD = r"(0|[1-9]\d*)", "[0-9a-zA-Z-]+"
_PRE_RELEASE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRE_RELEASE}(\.{_PRE_RELEASE})*)?"
    rf"(\+{_WORD}(\.{_WORD})*)?",
    re.ASCII,
)


def _amount(text: str) -> Fraction:
    quantity = parse_quantity(text)
    return Fraction(quantity.mantissa) * Fraction(10) ** quantity.exponent


def _pool(spec: Json, path: str) -> Errors:
    pool, place = spec.get("pool") or {}, f"{path}.pool"
    yield from parts.pool_name(pool.get("name", ""), f"{place}.name")
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count <= 0:
        yield errors.invalid_value(
            f"{place}.resourceSliceCount", count, "must be greater than zero"
        )
    if generation < 0:
        detail = "must be greater than or equal to zero"
        yield errors.invalid_value(f"{place}.generation", generation, detail)


def _node_fields(obj: Json, path: str, fields: Iterable[str], empty_name: str) -> Errors:
    """The errors of the fields that say which nodes can use devices."""
    for field in fields:
        if field not in obj:
            continue
        value, place = obj[field], f"{path}.{field}"
        if field == "nodeSelector":
            yield from rules.check(value, place, NODE_SELECTOR)
        elif field == "nodeName" and value:
            yield from rules.named(value, names.dns_subdomain, place)
        elif not value:
            detail = empty_name if field == "nodeName" else "must be either unset or set to true"
            yield errors.invalid_value(place, value, detail)


def _set_fields(obj: Json, fields: Iterable[str]) -> list[str]:
    return [f"`{field}`" for field in fields if obj.get(field)]


def _nodes(spec: Json, path: str) -> Errors:
    empty_name = "must be either unset or set to a non-empty string"
    yield from _node_fields(spec, path, _SLICE_FIELDS, empty_name)
    terms = (spec.get("nodeSelector") or {}).get("nodeSelectorTerms") or []
    if "nodeSelector" in spec and len(terms) != 1:
        detail = "must have exactly one node selector term"
        yield errors.invalid_value(f"{path}.nodeSelector.nodeSelectorTerms", terms, detail)
    given = _set_fields(spec, _SLICE_FIELDS)
    if not given:
        yield errors.required(path, _ONE_OF_SLICE)
    elif len(given) > 1:
        detail = f"{_ONE_OF_SLICE}, but multiple fields are set"
        yield errors.invalid_value(path, f"{{{', '.join(given)}}}", detail)
    if spec.get("sharedCounters") and spec.get("devices"):
        detail = "only one of `sharedCounters` or `devices` is allowed"
        yield errors.invalid_value(path, "", detail)


def _device_nodes(device: Json, path: str, *, is_per_device: bool) -> Errors:
    fields = _SLICE_FIELDS[:3]
    if not is_per_device:
        if any(field in device for field in fields):
            yield errors.invalid_value(path, None, _ONLY_PER_DEVICE)
        return
    yield from _node_fields(device, path, fields, "must not be empty")
    given = _set_fields(device, fields)
    if not given:
        yield errors.required(path, _ONE_OF_DEVICE)
    elif len(given) > 1:
        yield errors.invalid_value(path, f"{{{', '.join(given)}}}", _ONE_OF_DEVICE)


def _attribute(attribute: Json, path: str) -> Errors:
    for kind in ("string", "version"):
        value, place = attribute.get(kind), f"{path}.{kind}"
        if value is None:
            continue
        if kind == "version" and not _VERSION.fullmatch(value):
            detail = "must be a string compatible with semver.org spec 2.0.0"
            yield errors.invalid_value(place, value, detail)
        if len(value.encode()) > _MAX_VALUE:
            yield errors.too_long(place, _MAX_VALUE)
    if len(attribute) != 1:
        detail = "exactly one value must be specified"
        yield errors.invalid_value(path, attribute or "", detail)


def _shareable_capacity(capacity: Json, path: str) -> Errors:
    policy, place = capacity.get("requestPolicy"), f"{path}.requestPolicy"
    if policy is None:
        return
    limit, values, span = (
        capacity.get("value", "0"),
        policy.get("validValues"),
        policy.get("validRange"),
    )
    if values and span is not None:
        detail = (
            'exactly one policy can be specified, cannot specify "validValues" and "validRange" at '
            "the same time"
        )
        yield errors.forbidden_field(place, detail)
    elif "default" not in policy:
        for field in ("validValues", "validRange"):
            if policy.get(field):
                yield errors.required(f"{place}.default", f"required when {field} is defined")
    elif values:
        yield from _options(policy["default"], values, limit, f"{place}.validValues")
    elif span is not None:
        yield from _range(policy["default"], span, limit, f"{place}.validRange")


def _options(default: str, values: list[str], limit: str, path: str) -> Errors:
    amounts = [_amount(value) for value in values]
    for position in range(1, len(values)):
        if amounts[position] < amounts[position - 1]:
            detail = "values must be sorted in ascending order"
            yield errors.invalid_value(f"{path}[{position}]", values[position], detail)
    if len(values) > _MAX_OPTIONS:
        yield errors.too_many(path, len(values), _MAX_OPTIONS)
        return
    for position, value in enumerate(values):
        if amounts[position] > _amount(limit):
            detail = f"option is larger than capacity value: {limit}"
            yield errors.invalid_value(f"{path}[{position}]", value, detail)
        if amounts[position] in amounts[:position]:
            yield errors.duplicate_value(f"{path}[{position}]", value)
    if _amount(default) not in amounts:
        detail = "default value is not valid according to the requestPolicy"
        yield errors.invalid_value(path, default, detail)


def _range(default: str, span: Json, limit: str, path: str) -> Errors:
    low, high, step = span.get("min"), span.get("max"), span.get("step")
    if low is None:
        yield errors.required(f"{path}.min", "required when validRange is defined")
        return
    checks = [
        ("min", low, low, limit, f"min is larger than capacity value: {limit}"),
        ("default", default, low, default, f"default is less than min: {low}"),
    ]
    if high is not None:
        checks += [
            ("max", low, low, high, f"min is larger than max: {high}"),
            ("max", high, high, limit, f"max is larger than capacity value: {limit}"),
            ("default", default, default, high, f"default is more than max: {high}"),
        ]
    for field, shown, lower, upper, detail in checks:
        if _amount(lower) > _amount(upper):
            yield errors.invalid_value(f"{path}.{field}", shown, detail)
    if step is not None:
        bounds = [default, *([] if high is None else [high])]
        yield from _steps(bounds, low, step, limit, f"{path}.step")


def _steps(bounds: list[str], low: str, step: str, limit: str, path: str) -> Errors:
    if _amount(step) <= 0:
        yield errors.invalid_value(path, step, "must be greater than zero")
        return
    if _amount(low) + _amount(step) > _amount(limit):
        detail = f"one step {step} is larger than capacity value: {limit}"
        yield errors.invalid_value(path, step, detail)
    for bound in bounds:
        if (_amount(bound) - _amount(low)) % _amount(step):
            detail = f"value is not a multiple of a given step ({step}) from ({low})"
            yield errors.invalid_value(path, bound, detail)


def _single_capacity(capacity: Json, path: str) -> Errors:
    if "requestPolicy" in capacity:
        detail = "allowMultipleAllocations must be true"
        yield errors.forbidden_field(f"{path}.requestPolicy", detail)


def _no_rule(_value: object, _path: str) -> Errors:
    return ()


_COUNTERS = (
    rules.need("counters"),
    parts.each_of_map("counters", parts.label, _no_rule),
)
_CONSUMED = (parts.at("counterSet", parts.label), *_COUNTERS)
_TAINTS = parts.each_item("taints", parts.device_taint, limit=MAX_TAINTS)
_ATTRIBUTES = parts.each_of_map("attributes", parts.attribute_name, _attribute, None)
_CONSUMES = (
    parts.each_item("consumesCounters", *_CONSUMED, limit=_MAX_CONSUMED_SETS),
    parts.unique("consumesCounters", lambda entry: entry.get("counterSet"), _MAX_CONSUMED_SETS),
)


def _device(device: Json, path: str) -> Errors:
    yield from parts.label(device.get("name", ""), f"{path}.name")
    count = len(device.get("attributes") or ()) + len(device.get("capacity") or ())
    if count > MAX_ITEMS:
        detail = f"the total number of attributes and capacities must not exceed {MAX_ITEMS}"
        yield errors.invalid_value(path, count, detail)
    is_shared = device.get("allowMultipleAllocations")
    capacity = _shareable_capacity if is_shared else _single_capacity
    yield from _ATTRIBUTES(device, path)
    yield from parts.each_of_map("capacity", parts.attribute_name, capacity, None)(device, path)
    yield from rules.check(device, path, (_TAINTS, *_CONSUMES))


def _devices(spec: Json, path: str) -> Errors:
    devices, is_per_device = spec.get("devices") or (), bool(spec.get("perDeviceNodeSelection"))
    has_extras = any(each.get("taints") or each.get("consumesCounters") for each in devices)
    limit = _MAX_DEVICES_WITH_EXTRAS if has_extras else _MAX_DEVICES

    def nodes(device: Json, place: str) -> Errors:
        return _device_nodes(device, place, is_per_device=is_per_device)

    checks = (_device, nodes, parts.binding_conditions)
    yield from parts.each_item("devices", *checks, limit=limit)(spec, path)
    yield from parts.unique("devices", parts.by_name, limit)(spec, path)


def _driver(spec: Json, path: str) -> Errors:
    return parts.driver_name(spec.get("driver", ""), f"{path}.driver")


DEVICE_SLICES = {
    "resourceslices.resource.k8s.io": rules.validation(
        rules.inside(
            "spec",
            _driver,
            _pool,
            _nodes,
            _devices,
            parts.each_item(
                "sharedCounters",
                parts.at("name", parts.label),
                *_COUNTERS,
                limit=_MAX_COUNTER_SETS,
            ),
            parts.unique("sharedCounters", parts.by_name, _MAX_COUNTER_SETS),
            always=True,
        ),
        after=tuple(map(rules.fixed, ("spec.pool.name", "spec.driver", "spec.nodeName"))),
    )
}
