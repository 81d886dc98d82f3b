"""Validation of the rules in a definition's schema: their texts and their estimated costs.

Follows ``ValidateCustomResourceDefinitionOpenAPISchema`` of apiextensions-apiserver. A rule costs
its estimate as often as the limits of the lists and maps around it let its value occur, or as often
as the value fits into a request if one of them has no limit.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from simcluster.apiserver.errors import (
    FieldError,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from simcluster.crds.rule_sizes import REQUEST_BYTES, declared_size
from simcluster.crds.schema_rules import RULES_FIELD, RuleError, compiled_rule, rule_costs
from stowage.cel.estimation.sizes import MOST

Json = dict[str, Any]

_RULE_LIMIT, _DEFINITION_LIMIT = 10_000_000, 100_000_000
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\['(?P<quoted>(?:[^'\\]|\\.)*)'\]")
_NUM_SHOWN = 4
_ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and strings are declared)"
)


class _Place(NamedTuple):
    """A schema and where it stands.

    Args:
        num_values: how many values of the schema an object can have; ``None`` for no limit.
        uncorrelatable: the field of the outermost schema whose parts are not compared with those
            before a change; empty for none.
    """

    schema: Json
    field: str
    is_root: bool = False
    num_values: int | None = 1
    uncorrelatable: str = ""

    @property
    def is_resource(self) -> bool:
        return self.is_root or bool(self.schema.get("x-kubernetes-embedded-resource"))


def rule_text_errors(schema: Json, field: str) -> Iterator[FieldError]:
    """Errors of the rules of one schema that do not depend on their meaning."""
    for index, spec in enumerate(schema.get(RULES_FIELD) or ()):
        place = f"{field}.{RULES_FIELD}[{index}]"
        yield from _message_errors(spec, place)
        expression, reason = spec.get("messageExpression") or "", spec.get("reason")
        if expression and not expression.strip():
            why = "messageExpression must be non-empty if specified"
            yield required(f"{place}.messageExpression", why)
        if reason is not None and reason not in _REASONS:
            yield unsupported_value(f"{place}.reason", reason, _REASONS)
        if path := spec.get("fieldPath"):
            for why in _path_errors(schema, path):
                yield invalid_value(f"{place}.fieldPath", path, why)


def _message_errors(spec: Json, place: str) -> Iterator[FieldError]:
    rule, message = (spec.get("rule") or "").strip(), spec.get("message") or ""
    if not rule:
        yield required(f"{place}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid_value(f"{place}.message", message, "must be non-empty if specified")
    elif _has_line_breaks(message.strip()):
        yield invalid_value(f"{place}.message", message, "must not contain line breaks")
    elif _has_line_breaks(rule) and not message.strip():
        why = "message must be specified if rule contains line breaks"
        yield required(f"{place}.message", why)


def _path_errors(schema: Json, path: str) -> Iterator[str]:
    if not path.strip():
        yield "must be non-empty if specified"
    if _has_line_breaks(path):
        yield "must not contain line breaks"
    if not _leads_to_a_field(schema, path):
        yield "must be a valid path"


def _leads_to_a_field(schema: Any, path: str) -> bool:
    """Whether a path such as ``.spec['my.name']`` names a field, or an entry of a map."""
    steps = list(_STEP.finditer(path))
    if "".join(step[0] for step in steps) != path:
        return False
    for step in steps:
        if not isinstance(schema, dict):
            return False
        name = step["name"] or step["quoted"]
        properties = schema.get("properties")
        schema = properties.get(name) if properties else schema.get("additionalProperties")
    return bool(steps) and isinstance(schema, dict)


def _has_line_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def rule_errors(schema: Json, field: str, *, is_unchanged: bool = False) -> Iterator[FieldError]:
    """Errors of the rules in a definition's schema, which has no other errors.

    Args:
        schema: the ``openAPIV3Schema``.
        field: where it stands.
        is_unchanged: the definition had the same schema before; single rules may be too costly.
    """
    budget = _Budget(is_unchanged)
    yield from _errors(_Place(schema, field, is_root=True), budget)
    yield from budget.errors(field)


def _errors(place: _Place, budget: "_Budget") -> Iterator[FieldError]:
    for below in _places_below(place):
        yield from _errors(below, budget)
    encoded = msgspec.json.encode(place.schema) if place.schema.get(RULES_FIELD) else b""
    for index, spec in enumerate(place.schema.get(RULES_FIELD) or ()):
        field = f"{place.field}.{RULES_FIELD}[{index}]"
        yield from _one_rule(place, encoded, spec, field, budget)


def _one_rule(
    place: _Place, encoded: bytes, spec: Json, field: str, budget: "_Budget"
) -> Iterator[FieldError]:
    encoded_spec = msgspec.json.encode(spec)
    try:
        rule = compiled_rule(encoded, place.is_resource, encoded_spec)
    except RuleError as error:
        yield invalid_value(f"{field}.{error.part}", _shown(spec), str(error))
        return
    cost, message_cost = rule_costs(encoded, place.is_resource, encoded_spec)
    yield from budget.take(f"{field}.rule", "rule", min(MOST, cost * _num_values(place)))
    if rule.message is not None:
        yield from budget.take(f"{field}.messageExpression", "messageExpression", message_cost)
    if "oldSelf" in rule.expression.names:
        if place.uncorrelatable:
            why = "oldSelf cannot be used on the uncorrelatable portion of the schema within "
            yield invalid_value(f"{field}.rule", spec["rule"], why + place.uncorrelatable)
    elif (optional := spec.get("optionalOldSelf")) is not None:
        why = "may not be set if oldSelf is not used in rule"
        yield invalid_value(f"{field}.optionalOldSelf", optional, why)


def _num_values(place: _Place) -> int:
    if place.num_values is not None:
        return place.num_values
    size = declared_size(place.schema, is_resource=place.is_resource)
    return 1 if size is None else REQUEST_BYTES // (size.least_bytes + 1)


def _places_below(place: _Place) -> Iterator[_Place]:
    schema, field = place.schema, place.field
    others, items = schema.get("additionalProperties"), schema.get("items")
    num_values = _num_values_below(place)
    within = place.uncorrelatable
    if isinstance(others, dict):
        yield _Place(others, f"{field}.additionalProperties", False, num_values, within)
    for name, inner in (schema.get("properties") or {}).items():
        if not (place.is_root and name in {"apiVersion", "kind", "metadata"}):
            yield _Place(inner, f"{field}.properties[{name}]", False, num_values, within)
    if isinstance(items, dict):
        is_map = schema.get("x-kubernetes-list-type") == "map"
        of_items = within or ("" if is_map else field)
        yield _Place(items, f"{field}.items", False, num_values, of_items)


def _num_values_below(place: _Place) -> int | None:
    schema = place.schema
    limit: int | None = 1
    if schema.get("type") == "array":
        limit = schema.get("maxItems")
    elif schema.get("type") == "object" and schema.get("additionalProperties"):
        limit = schema.get("maxProperties")
    if place.num_values is None or limit is None:
        return None
    return min(MOST, place.num_values * max(0, limit))


class _Budget:
    """The estimated costs of all rules of a schema."""

    def __init__(self, is_unchanged: bool) -> None:
        self._is_unchanged = is_unchanged
        self._costs: list[tuple[int, str]] = []

    def take(self, field: str, what: str, cost: int) -> Iterator[FieldError]:
        """Count an expression, and refuse one that costs too much."""
        self._costs.append((cost, field))
        if cost > _RULE_LIMIT and not self._is_unchanged:
            yield forbidden_field(field, _exceeds(f"estimated {what} cost", cost, _RULE_LIMIT))

    def errors(self, field: str) -> Iterator[FieldError]:
        """The errors of a schema whose rules together cost too much."""
        total = min(MOST, sum(cost for cost, _ in self._costs))
        if total <= _DEFINITION_LIMIT:
            return
        costly = [found for found in self._costs if found[0] >= _DEFINITION_LIMIT // 100]
        for _, place in sorted(costly, key=lambda found: -found[0])[:_NUM_SHOWN]:
            why = (
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3"
                " schema"
            )
            yield forbidden_field(place, why)
        what = f"{RULES_FIELD} estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden_field(field, _exceeds(what, total, _DEFINITION_LIMIT))


def _exceeds(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    shown = "more than 100x" if factor > 100 else shown
    return f"{what} exceeds budget by factor of {shown} {_ADVICE}"


def _shown(spec: Json) -> Json:
    """A rule as the API server shows it in errors."""
    texts = {key: spec.get(key) or "" for key in ("rule", "message", "messageExpression")}
    return {
        **{key[0].upper() + key[1:]: text for key, text in texts.items()},
        "Reason": spec.get("reason"),
        "FieldPath": spec.get("fieldPath") or "",
        "OptionalOldSelf": spec.get("optionalOldSelf"),
    }
