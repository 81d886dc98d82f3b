"""The worst cost of an expression (``checker/cost.go`` of cel-go)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stowage.cel.checking.checker import qualified_name
from stowage.cel.estimation.called import CalledOverload
from stowage.cel.estimation.calls import call_cost
from stowage.cel.estimation.sizes import MOST, Size, bounded, exactly
from stowage.cel.estimation.tracked_sizes import ITEMS, VALUES, DeclaredSize, Entries, TrackedSizes
from stowage.cel.functions.costs import LIST_BASE, MAP_BASE
from stowage.cel.signatures.types import Kind
from stowage.cel.syntax.tree import (
    AND,
    CONDITIONAL,
    INDEX,
    OR,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
)


def worst_cost(tree: Node, declared: DeclaredSize) -> int:
    """The greatest cost that an evaluation can have, as the API server estimates it.

    Args:
        tree: The expression, with its types.
        declared: The greatest sizes of the variables.
    """
    return _Estimator(declared).cost(tree)


class _Estimator:
    def __init__(self, declared: DeclaredSize) -> None:
        self._sizes = TrackedSizes(declared)
        self._found: dict[Node, int] = {}
        self._costs: dict[type, Callable[[Any], int]] = {
            Literal: lambda _node: 0,
            Ident: self._ident,
            Select: self._select,
            Call: self._call,
            ListLiteral: self._list,
            MapLiteral: self._map,
            Comprehension: self._comprehension,
        }

    def cost(self, node: Node) -> int:
        if node not in self._found:  # a macro may use one node twice
            self._found[node] = bounded(self._costs[type(node)](node))
        return self._found[node]

    def _ident(self, node: Ident) -> int:
        self._sizes.lead(node, self._sizes.path(node) or (node.name.removeprefix("."),))
        return 1

    def _select(self, node: Select) -> int:
        if node.operand.type is None:  # a name with dots
            self._sizes.lead(node, (qualified_name(node) or "",))
            return 1
        operand = self.cost(node.operand)
        if node.test_only:
            return operand
        if node.optional:
            self._sizes.keep(node, self._sizes.size(node))
            return operand + 1
        self._sizes.lead(node, (*self._sizes.path(node.operand), node.field_name))
        return operand + (node.operand.type.kind in (Kind.MAP, Kind.STRUCT))

    def _call(self, node: Call) -> int:
        if node.function == "dyn":
            operand = self.cost(node.args[0])
            self._sizes.copy(node, node.args[0])
            return operand + 1
        costs = [self.cost(arg) for arg in node.args]
        if node.function in (AND, OR):
            return sum(costs)
        target = 0 if node.target is None else self.cost(node.target)
        if node.function == CONDITIONAL:
            costs = [costs[0], max(costs[1:])]
        return target + sum(costs) + self._own_cost(node)

    def _own_cost(self, node: Call) -> int:
        """The cost of the most expensive overload; the result has the size of one of them."""
        most, size = 0, None
        for candidate in node.overloads:
            found = call_cost(CalledOverload(self._sizes, node, candidate))
            most = max(most, found.cost)
            if found.result is not None:
                size = found.result if size is None else size.or_(found.result)
            if node.function == INDEX and candidate.arguments[0].kind is not Kind.OPAQUE:
                size = self._indexed(node, is_list=candidate.arguments[0].kind is Kind.LIST)
            if size is None:
                size = self._sizes.size(node)
        self._sizes.keep(node, size)
        return most

    def _indexed(self, node: Call, *, is_list: bool) -> Size | None:
        container = node.args[0]
        self._sizes.lead(node, (*self._sizes.path(container), ITEMS if is_list else VALUES))
        entries = self._sizes.entries(container)
        return None if entries is None else entries.value

    def _list(self, node: ListLiteral) -> int:
        costs = [self.cost(element) for element in node.elements]
        item = self._any_of(node.elements)
        self._sizes.keep(node, None, Entries(is_list=True, key=exactly(1), value=item))
        return sum(costs) + LIST_BASE

    def _map(self, node: MapLiteral) -> int:
        costs = [self.cost(part) for entry in node.entries for part in (entry.key, entry.value)]
        key = self._any_of([entry.key for entry in node.entries])
        value = self._any_of([entry.value for entry in node.entries])
        self._sizes.keep(node, None, Entries(is_list=False, key=key, value=value))
        return sum(costs) + MAP_BASE

    def _any_of(self, nodes: list[Node]) -> Size:
        """The size of one of the nodes."""
        found = Size(MOST if nodes else 0, 0)
        for node in nodes:
            found = found.or_(self._sizes.size_or_unknown(node))
        return found

    def _comprehension(self, node: Comprehension) -> int:
        sizes = self._sizes
        before = self.cost(node.iter_range) + self.cost(node.initial)
        if _is_binding(node):
            with sizes.bound(node.accumulator, node.initial):
                result = self.cost(node.result)
            sizes.copy(node, node.result)
            return before + result
        with sizes.bound(node.accumulator, node.initial):
            with sizes.iterated(node.variables, node.iter_range):
                step = self.cost(node.condition) + self.cost(node.step)
            result = self.cost(node.result)
        ranged = sizes.size_or_unknown(node.iter_range)
        if isinstance(node.initial, Literal):
            sizes.keep(node, sizes.size(node.initial))
        else:
            sizes.keep(node, ranged, sizes.entries(node.step))
        return before + result + bounded(ranged.most * bounded(step))


def _is_binding(node: Comprehension) -> bool:
    """Whether a loop is written for ``cel.bind`` and the like: over nothing, for its result."""
    over_nothing = isinstance(node.iter_range, ListLiteral) and not node.iter_range.elements
    never = isinstance(node.condition, Literal) and node.condition.value is False
    return over_nothing and never
