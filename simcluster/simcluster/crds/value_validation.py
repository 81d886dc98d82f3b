"""Validation of what a structural schema may say below ``allOf``, ``anyOf``, ``oneOf`` and ``not``.

Follows ``schema/validation.go`` of apiextensions-apiserver.
"""

from collections.abc import Iterator
from typing import Any

from simcluster.apiserver.errors import FieldError, forbidden_field, invalid_value
from simcluster.crds.patterns import PatternError, compiled_pattern

Json = dict[str, Any]

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_FORBIDDEN = {
    **dict.fromkeys(("type", "title", "description", "x-kubernetes-list-map-keys"), "empty"),
    **dict.fromkeys(("additionalProperties", "default"), "undefined"),
    **dict.fromkeys(("x-kubernetes-list-type", "x-kubernetes-map-type"), "undefined"),
    "nullable": "false",
    "x-kubernetes-preserve-unknown-fields": "false",
    "x-kubernetes-embedded-resource": "false",
    "x-kubernetes-int-or-string": "false",
}


def value_errors(schema: Json, field: str) -> Iterator[FieldError]:
    """Errors of a schema's pattern and of its combinations."""
    yield from _pattern_errors(schema, field)
    any_of, all_of = schema.get("anyOf") or (), schema.get("allOf") or ()
    if any_of != _INT_OR_STRING:
        for index, inner in enumerate(any_of):
            yield from _nested_errors(inner, f"{field}.anyOf[{index}]", False)
    for index, inner in enumerate(all_of):
        is_alternative = not index and inner.get("anyOf") == _INT_OR_STRING
        shown = {key: inner[key] for key in inner if key != "anyOf"} if is_alternative else inner
        yield from _nested_errors(shown, f"{field}.allOf[{index}]", True)
    for index, inner in enumerate(schema.get("oneOf") or ()):
        yield from _nested_errors(inner, f"{field}.oneOf[{index}]", False)
    if isinstance(inner := schema.get("not"), dict):
        yield from _nested_errors(inner, f"{field}.not", False)


def _nested_errors(schema: Json, field: str, has_rules: bool) -> Iterator[FieldError]:
    yield from value_errors(schema, field)
    if isinstance(items := schema.get("items"), dict):
        yield from _nested_errors(items, f"{field}.items", has_rules)
    for name, inner in (schema.get("properties") or {}).items():
        yield from _nested_errors(inner, f"{field}.properties[{name}]", has_rules)
    for key, what in _FORBIDDEN.items():
        if schema.get(key) not in (None, "", [], False):
            yield forbidden_field(f"{field}.{key}", f"must be {what} to be structural")
    if schema.get("x-kubernetes-validations") and not has_rules:
        place = f"{field}.x-kubernetes-validations"
        yield forbidden_field(place, "must be empty to be structural")
    if "metadata" in (schema.get("properties") or {}):
        place = f"{field}.properties[metadata]"
        yield forbidden_field(place, "must not be specified in a nested context")


def _pattern_errors(schema: Json, field: str) -> Iterator[FieldError]:
    pattern = schema.get("pattern") or ""
    try:
        compiled_pattern(pattern)
    except PatternError as error:
        why = f"must be a valid regular expression, but isn't: {error}"
        yield invalid_value(f"{field}.pattern", pattern, why)
