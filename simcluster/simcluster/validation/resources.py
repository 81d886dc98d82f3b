"""Amounts of resources: names, signs, whole numbers, and requests within limits."""

from simcluster.apiserver import errors
from simcluster.validation import names, rules
from simcluster.validation.rules import Errors, Rule
from simcluster.values import Json
from stowage.api.values.quantity import parse_quantity

_STANDARD = frozenset(("cpu", "memory", "ephemeral-storage"))


def _is_huge_page(name: str) -> bool:
    return name.startswith("hugepages-")


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def validate_amount(name: str, amount: str, path: str) -> Errors:
    """Errors of one amount: negative, or a fraction of a resource that is counted in pieces."""
    if amount.startswith("-"):
        yield errors.invalid_value(path, amount, "must be greater than or equal to 0")
    is_extended = not _is_native(name) and not name.startswith("requests.")
    if (name == "pods" or is_extended) and parse_quantity(amount).milli_value() % 1000:
        yield errors.invalid_value(path, amount, "must be an integer")


def amounts(field: str, shown: str = "{path}.{name}") -> Rule:
    """A map of amounts without rules for its names, such as a node's capacity."""

    def rule(obj: Json, path: str) -> Errors:
        for name, amount in (obj.get(field) or {}).items():
            place = shown.format(path=rules.below(path, field), name=name)
            yield from validate_amount(name, amount, place)

    return rule


def _container_resource(name: str, path: str) -> list[errors.FieldError]:
    found = [errors.invalid_value(path, name, message) for message in names.qualified_name(name)]
    if found:
        return found
    if "/" not in name:
        if name not in _STANDARD and not _is_huge_page(name):
            if name not in {"storage", "pods"}:
                detail = "must be a standard resource type or fully qualified"
                found.append(errors.invalid_value(path, name, detail))
            found.append(
                errors.invalid_value(path, name, "must be a standard resource for containers")
            )
    elif not _is_native(name) and name.startswith("requests."):
        found.append(
            errors.invalid_value(path, name, "doesn't follow extended resource name standard")
        )
    return found


def requirements(resources: Json, path: str) -> Errors:
    """Errors of requests and limits; a rule for :func:`inside`."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for kind, amounts_of in (("limits", limits), ("requests", requests)):
        for name, amount in amounts_of.items():
            place = f"{path}.{kind}[{name}]"
            yield from _container_resource(name, place)
            yield from validate_amount(name, amount, place)
            if kind == "requests":
                yield from _within(name, amount, limits.get(name), path)
    asked = {*limits, *requests}
    if any(map(_is_huge_page, asked)) and not asked & {"cpu", "memory"}:
        message = "Forbidden: HugePages require cpu or memory"
        yield errors.FieldError(path, "FieldValueForbidden", message)


def _within(name: str, request: str, limit: str | None, path: str) -> Errors:
    may_be_overcommitted = _is_native(name) and not _is_huge_page(name)
    if limit is None:
        if not may_be_overcommitted:
            detail = "Limit must be set for non overcommitable resources"
            yield errors.required(f"{path}.limits", detail)
        return
    difference = 0 if request == limit else _compare(request, limit)
    if difference and not may_be_overcommitted:
        detail = f"must be equal to {name} limit of {limit}"
        yield errors.invalid_value(f"{path}.requests", request, detail)
    elif difference > 0:
        detail = f"must be less than or equal to {name} limit of {limit}"
        yield errors.invalid_value(f"{path}.requests", request, detail)


def _compare(left: str, right: str) -> int:
    one, other = parse_quantity(left), parse_quantity(right)
    lowest = min(one.exponent, other.exponent)
    difference = one.mantissa * 10 ** (one.exponent - lowest)
    difference -= other.mantissa * 10 ** (other.exponent - lowest)
    return int(difference > 0) - int(difference < 0)
