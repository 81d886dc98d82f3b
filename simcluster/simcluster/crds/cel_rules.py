"""Evaluates the rules in the schemas of custom resources.

Follows ``schema/cel/validation.go`` of apiextensions-apiserver, transition rules and ratcheting
included. Left out are the cost budget of all rules of an object together, rules in ``allOf``, and
the warnings about rules that an unchanged value breaks.
"""

from collections.abc import Iterator
from typing import Any

from simcluster.apiserver.errors import (
    FieldError,
    duplicate_value,
    forbidden_field,
    invalid_value,
    required,
)
from simcluster.crds.cel_values import cel_value
from simcluster.crds.correlation import ABSENT, old_entry, old_items
from simcluster.crds.schema_rules import Rule, SchemaRules
from stowage.cel import CelRuntimeError
from stowage.cel.values.containers import NONE, Optional

Json = dict[str, Any]

_LONGEST_MESSAGE = 5 * 1024


def broken_rules(
    node: SchemaRules | None, new: Any, old: Any, path: str = "", is_unchanged: bool = False
) -> Iterator[FieldError]:
    """Errors of the rules that a value breaks.

    Args:
        node: the rules; ``None`` for none.
        new: the value.
        old: the value before, ``ABSENT`` if there is none.
        path: of the value.
        is_unchanged: whether the nearest value around it that has one before is equal to that.
    """
    if node is None or new is None:
        return
    if old is not ABSENT:
        is_unchanged = new == old
    yield from _broken_here(node, new, old, path, is_unchanged)
    if isinstance(new, dict):
        for key, item in new.items():
            inner, place = node.properties.get(key), f"{path}.{key}" if path else key
            if inner is None and node.others is not None:
                inner, place = node.others, f"{path}[{key}]"
            before = old_entry(old, key)
            yield from broken_rules(inner, item, before, place, is_unchanged)
    if isinstance(new, list):
        for index, (item, before) in enumerate(old_items(new, old, node.schema)):
            yield from broken_rules(node.items, item, before, f"{path}[{index}]", is_unchanged)


def _broken_here(
    node: SchemaRules, new: Any, old: Any, path: str, is_unchanged: bool
) -> Iterator[FieldError]:
    if not node.rules:
        return
    schema, is_resource, place = node.schema, node.is_resource, path or "<nil>"
    value = cel_value(new, schema, is_resource=is_resource)
    before = None if old is ABSENT else cel_value(old, schema, is_resource=is_resource)
    for rule in node.rules:
        is_optional = bool(rule.spec.get("optionalOldSelf"))
        is_transition = "oldSelf" in rule.expression.names
        if is_transition and old is ABSENT and not is_optional:
            continue
        past = before
        if is_optional:
            past = NONE if old is ABSENT else Optional(before)
        try:
            if rule.expression.evaluate([value, past])[0] is True:
                continue
        except CelRuntimeError as error:
            yield invalid_value(place, schema.get("type", ""), _failure(error, rule.spec))
            continue
        if is_transition or not is_unchanged:
            yield _error(rule, path, new, _detail(rule, [value, past]))


def _failure(error: CelRuntimeError, spec: Json) -> str:
    what, rule = str(error), spec.get("message") or spec["rule"].strip()
    if what.startswith("no such overload"):
        why = "call arguments did not match a supported operator, function or macro signature"
        return f"'{what}': {why} for rule: {rule}"
    if what.startswith("operation cancelled: actual cost limit exceeded"):
        why = "no further validation rules will be run due to call cost exceeds limit"
        return f"'{what}': {why} for rule: {rule}"
    return f"{what} evaluating rule: {rule}"


def _detail(rule: Rule, values: list[Any]) -> str:
    """The message of a broken rule."""
    if rule.message is not None:
        try:
            text = rule.message.evaluate(values)[0]
        except CelRuntimeError:
            text = ""
        text = text.strip() if isinstance(text, str) else ""
        if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE:
            return text
    given: str = rule.spec.get("message") or ""
    return given.strip() or f"failed rule: {rule.spec['rule'].strip()}"


def _error(rule: Rule, path: str, value: Any, detail: str) -> FieldError:
    inner = (rule.spec.get("fieldPath") or "").lstrip(".")
    place = ".".join(filter(None, (path, inner))) or "<nil>"
    reason = rule.spec.get("reason") or "FieldValueInvalid"
    if reason == "FieldValueForbidden":
        return forbidden_field(place, detail)
    if reason == "FieldValueRequired":
        return required(place, detail)
    if reason == "FieldValueDuplicate":
        return duplicate_value(place, value)
    if isinstance(value, dict | list):
        return FieldError(place, reason, f"Invalid value: {detail}")
    return invalid_value(place, value, detail)
