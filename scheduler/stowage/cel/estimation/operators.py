"""Worst costs of operators."""

from __future__ import annotations

from collections.abc import Mapping

from stowage.cel.estimation.called import CallCost, CalledOverload, Estimate
from stowage.cel.estimation.sizes import scaled
from stowage.cel.functions.costs import TRAVERSAL
from stowage.cel.signatures.functions import NAMED_TYPES
from stowage.cel.signatures.types import BYTES, STRING, Kind
from stowage.cel.syntax.tree import ADD, CONDITIONAL, EQUALS, IN, NOT_EQUALS, Node

_LONGEST_NAME_OF_FORMAT = 64
_CHEAP_TO_COMPARE = frozenset(
    NAMED_TYPES[name]
    for name in (
        *("Quantity", "Semver", "IP", "CIDR", "Authorizer"),
        *("PathCheck", "GroupCheck", "ResourceCheck", "Decision"),
    )
)


def _equals(called: CalledOverload) -> CallCost:
    left, right = (arg.type for arg in called.call.args)
    if left == right and left in _CHEAP_TO_COMPARE:
        return CallCost(1)
    if left == right == NAMED_TYPES["Format"]:
        return CallCost(scaled(_LONGEST_NAME_OF_FORMAT, TRAVERSAL))
    if left == right == NAMED_TYPES["URL"]:
        size = called.sizes.size(called.call.args[1])
        return CallCost(1 if size is None else size.cost(TRAVERSAL))
    return _compare(called)


def _compare(called: CalledOverload) -> CallCost:
    """Compare up to the end of the smaller value."""
    smaller = min(called.argument(0).most, called.argument(1).most)
    return CallCost(scaled(smaller, TRAVERSAL))


def _compare_texts(called: CalledOverload) -> CallCost | None:
    of_text = called.candidate.arguments[0] in (STRING, BYTES)
    return _compare(called) if of_text else None


def _in(called: CalledOverload) -> CallCost | None:
    if called.candidate.arguments[1].kind is not Kind.LIST:
        return None
    return CallCost(called.argument(1).most)


def _conditional(called: CalledOverload) -> CallCost:
    _, one, other = called.call.args
    _keep_either(called, one, other)
    return CallCost(0, called.sizes.size_or_unknown(one).or_(called.sizes.size_or_unknown(other)))


def _add(called: CalledOverload) -> CallCost | None:
    is_list = called.candidate.arguments[0].kind is Kind.LIST
    if not is_list and called.candidate.arguments[0] not in (STRING, BYTES):
        return None
    size = called.argument(0).plus(called.argument(1))
    _keep_either(called, *called.call.args)
    return CallCost(1 if is_list else size.cost(TRAVERSAL), size)


def _keep_either(called: CalledOverload, one: Node, other: Node) -> None:
    """The result has entries of one of the two."""
    entries, others = called.sizes.entries(one), called.sizes.entries(other)
    if entries is not None and others is not None:
        called.sizes.keep(called.call, None, entries.or_(others))


OPERATORS: Mapping[str, Estimate] = {
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _compare_texts),
    ADD: _add,
    CONDITIONAL: _conditional,
    EQUALS: _equals,
    IN: _in,
    NOT_EQUALS: _compare,
}
