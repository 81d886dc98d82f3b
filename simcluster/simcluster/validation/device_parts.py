"""What claims, classes and slices of devices have in common: names, lists, tolerations, taints.

Follows ``pkg/apis/resource/validation`` of v1.36. CEL expressions are not compiled.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from simcluster.apiserver import errors
from simcluster.store.stored import encode
from simcluster.validation import names, rules
from simcluster.validation.rules import Errors, Rule
from simcluster.values import Json
from stowage.cel import COST_LIMIT, CelCompileError
from stowage.cel.estimation import worst_selector_cost

MAX_ITEMS = 32
"""Entries of most lists: requests, constraints, selectors, results, attributes, counters."""
MAX_TAINTS = 16
_MAX_BINDING_CONDITIONS = 4
_MAX_DRIVER = 63
_MAX_IDENTIFIER = 32
_MAX_POOL = 253
_MAX_EXPRESSION = _MAX_PARAMETERS = 10 * 1024
_IDENTIFIER = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_NOT_IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of "
    "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for "
    "validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_OPERATORS = ("Equal", "Exists")

ItemRule = Callable[[Any, str], Errors]


def each_item(field: str, *checks: ItemRule, limit: int = MAX_ITEMS) -> Rule:
    """Rules of each item of a list, which are not applied if there are too many."""

    def rule(obj: Json, path: str) -> Errors:
        items, place = obj.get(field) or (), rules.below(path, field)
        if len(items) > limit:
            yield errors.too_many(place, len(items), limit)
            return
        for position, item in enumerate(items):
            for check in checks:
                yield from check(item, f"{place}[{position}]")

    return rule


def unique(field: str, key: Callable[[Any], object], limit: int = MAX_ITEMS) -> Rule:
    """The items of a list differ in a key; duplicates come after the errors of the items."""

    def rule(obj: Json, path: str) -> Errors:
        seen, items = set(), obj.get(field) or ()
        for position, item in enumerate(items if len(items) <= limit else ()):
            value = key(item)
            if value in seen:
                yield errors.duplicate_value(f"{rules.below(path, field)}[{position}]", value)
            seen.add(value)

    return rule


def by_name(item: Json) -> str:
    """The key of items that have a name."""
    return str(item.get("name", ""))


def each_of_map(
    field: str, check_key: ItemRule, check_value: ItemRule, limit: int | None = MAX_ITEMS
) -> Rule:
    """Rules of the keys and values of a map."""

    def rule(obj: Json, path: str) -> Errors:
        found, place = obj.get(field) or {}, rules.below(path, field)
        if limit is not None and len(found) > limit:
            yield errors.too_many(place, len(found), limit)
            return
        for key, value in found.items():
            yield from check_key(key, place)
            yield from check_value(value, f"{place}[{key}]")

    return rule


def at(field: str, check: ItemRule) -> Rule:
    """A rule of a text that must be set, or else is required."""

    def rule(obj: Json, path: str) -> Errors:
        value, place = obj.get(field) or "", rules.below(path, field)
        return check(value, place) if value else (errors.required(place),)

    return rule


def label(value: str, path: str) -> Errors:
    """A DNS label, such as the name of a device."""
    return rules.named(value, names.dns_label, path)


def driver_name(value: str, path: str) -> Errors:
    """The name of a driver, which has the form of a CSI driver's name."""
    if not value:
        yield errors.required(path)
        return
    if len(value) > _MAX_DRIVER:
        yield errors.too_long(path, _MAX_DRIVER)
    yield from rules.named(value.lower(), names.dns_subdomain, path)


def pool_name(value: str, path: str) -> Errors:
    """One or more DNS subdomains, joined by slashes."""
    if not value:
        yield errors.required(path)
        return
    if len(value) > _MAX_POOL:
        yield errors.too_long(path, _MAX_POOL)
    for part in value.split("/"):
        yield from rules.named(part, names.dns_subdomain, path)


def _identifier(value: str, path: str) -> Errors:
    if len(value) > _MAX_IDENTIFIER:
        yield errors.too_long(path, _MAX_IDENTIFIER)
    if not _IDENTIFIER.fullmatch(value):
        yield errors.invalid_value(path, value, _NOT_IDENTIFIER)


def attribute_name(value: str, path: str) -> Errors:
    """An identifier, perhaps behind a domain."""
    domain, has_domain, name = value.partition("/")
    if not has_domain:
        yield from _identifier(value, path)
        return
    if "/" in name:
        yield errors.invalid_value(path, value, "must not contain more than one slash")
        return
    if domain:
        yield from driver_name(domain, path)
    else:
        yield errors.invalid_value(path, "", "the domain must not be empty")
    if name:
        yield from _identifier(name, path)
    else:
        yield errors.invalid_value(path, "", "the name must not be empty")


def qualified_attribute(value: str, path: str) -> Errors:
    """An identifier behind a domain."""
    yield from attribute_name(value, path)
    if "/" not in value:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        yield errors.invalid_value(path, value, detail)


def _selector(selector: Json, path: str) -> Errors:
    if "cel" not in selector:
        yield errors.required(f"{path}.cel")
        return
    place, expression = f"{path}.cel.expression", selector["cel"].get("expression", "")
    if len(expression.encode()) > _MAX_EXPRESSION:
        yield errors.too_long(place, _MAX_EXPRESSION)
        return
    refusal, cost = _compiled(expression)
    if refusal:
        yield errors.invalid_value(place, expression, refusal)
    elif cost > COST_LIMIT:
        yield errors.forbidden_field(place, "too complex, exceeds cost limit")


@lru_cache(maxsize=256)
def _compiled(expression: str) -> tuple[str, int]:
    """Why a selector does not compile, and its worst cost; claims of one template have the same."""
    try:
        return "", worst_selector_cost(expression)
    except CelCompileError as error:
        return str(error), 0


SELECTORS = each_item("selectors", _selector)


def opaque(config: Json, path: str) -> Errors:
    """The configuration for one driver."""
    place, given = f"{path}.opaque", config.get("opaque")
    if given is None:
        yield errors.required(place)
        return
    yield from driver_name(given.get("driver", ""), f"{place}.driver")
    yield from raw_object(given, f"{place}.parameters")


def raw_object(holder: Json, path: str) -> Errors:
    """The object in a field that the API server does not know, which must be an object."""
    value = holder.get(path.rpartition(".")[2])
    if value is None:
        yield errors.required(path)
    elif len(encode(value)) > _MAX_PARAMETERS:
        yield errors.too_long(path, _MAX_PARAMETERS)
    elif not isinstance(value, dict):
        yield errors.invalid_value(path, "<value omitted>", "must be a valid JSON object")


def device_toleration(toleration: Json, path: str) -> Errors:
    """A toleration of device taints."""
    operator, value = toleration.get("operator", ""), toleration.get("value", "")
    if toleration.get("key"):
        yield from rules.named(toleration["key"], names.qualified_name, f"{path}.key")
    if operator == "Equal":
        yield from rules.named(value, names.label_value, f"{path}.value")
    elif operator != "Exists":
        yield errors.unsupported_value(f"{path}.operator", operator, _OPERATORS)
    elif value:
        detail = "must be empty for operator `Exists`"
        yield errors.invalid_value(f"{path}.value", value, detail)
    if toleration.get("effect"):
        yield from rules.one_of("effect", *_EFFECTS)(toleration, path)


TOLERATIONS = each_item("tolerations", device_toleration, limit=MAX_TAINTS)


def device_taint(taint: Json, path: str) -> Errors:
    """A taint of a device."""
    yield from rules.named(taint.get("key", ""), names.qualified_name, f"{path}.key")
    if taint.get("value"):
        yield from rules.named(taint["value"], names.label_value, f"{path}.value")
    if not taint.get("effect"):
        yield errors.required(f"{path}.effect")
    else:
        yield from rules.one_of("effect", *_EFFECTS)(taint, path)


def _condition(value: str, path: str) -> Errors:
    return rules.named(value, names.qualified_name, path)


def binding_conditions(device: Json, path: str) -> Errors:
    """The binding conditions of a device, and those that say that binding failed."""
    fields = ("bindingConditions", "bindingFailureConditions")
    bound, failed = (device.get(field) or [] for field in fields)
    for field in fields:
        yield from each_item(field, _condition, limit=_MAX_BINDING_CONDITIONS)(device, path)
    for field in fields:
        yield from unique(field, str, _MAX_BINDING_CONDITIONS)(device, path)
    for position, condition in enumerate(failed):
        if condition in bound:
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            yield errors.invalid_value(f"{path}.{fields[1]}[{position}]", condition, detail)
    if failed and not bound:
        detail = "bindingConditions are required to use bindingFailureConditions"
        yield errors.invalid_value(f"{path}.{fields[0]}", None, detail)
    if bound and not failed:
        detail = "bindingFailureConditions are required to use bindingConditions"
        yield errors.invalid_value(f"{path}.{fields[1]}", None, detail)
