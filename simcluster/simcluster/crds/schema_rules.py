"""Compiles the rules in a schema (``x-kubernetes-validations``)."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from simcluster.crds.cel_values import declarations_of
from simcluster.crds.rule_sizes import declared_size
from stowage.cel import CelCompileError, Declarations, Expression, compile_expression
from stowage.cel.checking.checker import check
from stowage.cel.estimation import worst_expression_cost
from stowage.cel.signatures.types import BOOL, STRING, Type
from stowage.cel.syntax.parser import parse

Json = dict[str, Any]

RULES_FIELD = "x-kubernetes-validations"


class RuleError(CelCompileError):
    """A rule that is not valid.

    Args:
        part: ``rule`` or ``messageExpression``.
        why: what is wrong.
    """

    def __init__(self, part: str, why: str) -> None:
        super().__init__(why)
        self.part = part


class Rule(NamedTuple):
    """A compiled rule, and its ``messageExpression`` if it has one."""

    spec: Json
    expression: Expression
    message: Expression | None


@dataclass(frozen=True)
class SchemaRules:
    """The rules of a schema and of those below it; without any there is no object of this class."""

    schema: Json
    is_resource: bool
    rules: tuple[Rule, ...]
    properties: Mapping[str, "SchemaRules"]
    others: "SchemaRules | None"
    items: "SchemaRules | None"


def schema_rules(schema: Json, *, is_resource: bool = True) -> SchemaRules | None:
    """Compile the rules of a schema; one that does not compile, from a dump, is left out."""
    others, items = schema.get("additionalProperties"), schema.get("items")
    found = {key: _below(inner) for key, inner in (schema.get("properties") or {}).items()}
    made = SchemaRules(
        schema,
        is_resource,
        tuple(_compiling(schema, is_resource)),
        {key: inner for key, inner in found.items() if inner is not None},
        _below(others) if isinstance(others, dict) else None,
        _below(items) if isinstance(items, dict) else None,
    )
    return made if made.rules or made.properties or made.others or made.items else None


def _compiling(schema: Json, is_resource: bool) -> Iterator[Rule]:
    specs = schema.get(RULES_FIELD) or ()
    encoded = msgspec.json.encode(schema) if specs else b""
    for spec in specs:
        with contextlib.suppress(CelCompileError):
            yield compiled_rule(encoded, is_resource, msgspec.json.encode(spec))


def _below(schema: Json) -> SchemaRules | None:
    is_resource = bool(schema.get("x-kubernetes-embedded-resource"))
    return schema_rules(schema, is_resource=is_resource)


@lru_cache(maxsize=1024)
def compiled_rule(schema: bytes, is_resource: bool, spec: bytes) -> Rule:
    """Compile a rule; a definition's update compiles the same ones again.

    Raises:
        RuleError: it is not valid.
    """
    rule: Json = msgspec.json.decode(spec)
    declared = _declarations(schema, is_resource, rule)
    expression = _compiled("rule", rule["rule"], declared, BOOL)
    text = rule.get("messageExpression")
    message = _compiled("messageExpression", text, declared, STRING) if text else None
    return Rule(rule, expression, message)


def _declarations(schema: bytes, is_resource: bool, rule: Json) -> Declarations:
    return declarations_of(
        msgspec.json.decode(schema),
        is_resource=is_resource,
        has_optional_old=bool(rule.get("optionalOldSelf")),
    )


def _compiled(part: str, text: str, declared: Declarations, result: Type) -> Expression:
    try:
        expression = compile_expression(text, declared, result)
        if check(parse(text), text, declared) != result:
            raise CelCompileError(f"must evaluate to a {result}")
    except CelCompileError as error:
        why = str(error)
        if part == "messageExpression":
            why = f"{part} {why}"
        elif why.startswith("must evaluate"):
            why = f"cel expression {why}"
        raise RuleError(part, why) from error
    return expression


@lru_cache(maxsize=1024)
def rule_costs(schema: bytes, is_resource: bool, spec: bytes) -> tuple[int, int]:
    """The greatest costs of a valid rule and of its ``messageExpression``, for one value."""
    rule: Json = msgspec.json.decode(spec)
    declared = _declarations(schema, is_resource, rule)
    size = declared_size(msgspec.json.decode(schema), is_resource=is_resource)
    if size is None:
        return 0, 0
    text = rule.get("messageExpression")
    message_cost = worst_expression_cost(text, declared, size.at) if text else 0
    return worst_expression_cost(rule["rule"], declared, size.at), message_cost
