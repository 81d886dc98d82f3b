"""Amounts of resources: names, signs, whole numbers, and requests within limits."""

from typing import Any

from stowage.api.values.quantity import parse_quantity

from simcluster.apiserver.errors import FieldError, invalid_value, required
from simcluster.validation import names

Json = dict[str, Any]

_STANDARD = frozenset(("cpu", "memory", "ephemeral-storage"))
_NATIVE_PREFIX = "kubernetes.io/"
_NOT_NEGATIVE = "must be greater than or equal to 0"


def _is_huge_page(name: str) -> bool:
    return name.startswith("hugepages-")


def _is_native(name: str) -> bool:
    return "/" not in name or _NATIVE_PREFIX in name


def _is_extended(name: str) -> bool:
    return not _is_native(name) and not name.startswith("requests.")


def may_be_overcommitted(name: str) -> bool:
    """A request below its limit makes sense."""
    return _is_native(name) and not _is_huge_page(name)


def validate_amount(name: str, amount: str, path: str) -> list[FieldError]:
    """Errors of one amount: negative, or a part of something that comes in pieces."""
    found = []
    if amount.startswith("-"):
        found.append(invalid_value(path, amount, _NOT_NEGATIVE))
    if name == "pods" or _is_extended(name):
        quantity = parse_quantity(amount)
        if quantity.milli_value() % 1000:
            found.append(invalid_value(path, amount, "must be an integer"))
    return found


def validate_amounts(amounts: Json, path: str) -> list[FieldError]:
    """Errors of a map of amounts without rules for its names, such as a node's capacity."""
    return [
        error
        for name, amount in amounts.items()
        for error in validate_amount(name, amount, f"{path}.{name}")
    ]


def _validate_container_resource(name: str, path: str) -> list[FieldError]:
    found = [invalid_value(path, name, message) for message in names.qualified_name(name)]
    if found:
        return found
    if "/" not in name:
        if name not in _STANDARD and not _is_huge_page(name):
            if name not in {"storage", "pods"}:
                detail = "must be a standard resource type or fully qualified"
                found.append(invalid_value(path, name, detail))
            found.append(invalid_value(path, name, "must be a standard resource for containers"))
    elif not _is_native(name) and name.startswith("requests."):
        found.append(invalid_value(path, name, "doesn't follow extended resource name standard"))
    return found


def validate_requirements(resources: Json, path: str) -> list[FieldError]:
    """Errors of a container's requests and limits."""
    found: list[FieldError] = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            place = f"{path}.{kind}[{name}]"
            found += _validate_container_resource(name, place)
            found += validate_amount(name, amount, place)
            if kind == "requests":
                found += _validate_within(name, amount, limits.get(name), path)
    has_core = any(name in {"cpu", "memory"} for name in (*limits, *requests))
    if not has_core and any(map(_is_huge_page, (*limits, *requests))):
        detail = "HugePages require cpu or memory"
        found.append(FieldError(path, "FieldValueForbidden", f"Forbidden: {detail}"))
    return found


def _validate_within(name: str, request: str, limit: str | None, path: str) -> list[FieldError]:
    if limit is None:
        if may_be_overcommitted(name):
            return []
        return [required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    if request == limit:
        return []
    wanted, allowed = parse_quantity(request), parse_quantity(limit)
    difference = _compare(wanted, allowed)
    if difference and not may_be_overcommitted(name):
        detail = f"must be equal to {name} limit of {limit}"
        return [invalid_value(f"{path}.requests", request, detail)]
    if difference > 0:
        detail = f"must be less than or equal to {name} limit of {limit}"
        return [invalid_value(f"{path}.requests", request, detail)]
    return []


def _compare(left: Any, right: Any) -> int:
    lowest = min(left.exponent, right.exponent)
    one = left.mantissa * 10 ** (left.exponent - lowest)
    other = right.mantissa * 10 ** (right.exponent - lowest)
    return int((one > other) - (one < other))
