"""Node selectors, node affinity and tolerations, evaluated for many nodes at once.

A requirement is evaluated once per distinct label value, a toleration once per distinct set of
taints; each node looks up the result by its code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from stowage.api.objects.node import Taint
from stowage.api.objects.pod import Toleration
from stowage.api.values.node_affinity import (
    NODE_NAME_FIELD,
    NodeTerm,
    NodeTerms,
    PreferredTerm,
    RequiredNodeAffinity,
)
from stowage.api.values.selectors import Operator, Requirement, Selector, parse_int64
from stowage.api.values.tolerations import tolerated
from stowage.state.arrays import BoolArray, Int64Array
from stowage.state.interning import ABSENT
from stowage.state.nodes.label_columns import LabelColumn
from stowage.state.nodes.row_bits import SumsOfWeights, TermBits
from stowage.state.snapshot import NodeView, Snapshot

_SETS = (Operator.IN, Operator.NOT_IN)
_MANY_TERMS = 16
"""From this number on, terms are summed up by values and names instead of node by node."""


def requirement_mask(nodes: NodeView, requirement: Requirement) -> BoolArray:
    """``bool[nodes]``: where a label meets a requirement.

    Rows without a node have no labels, so NotIn and DoesNotExist hold for them; see
    `NodeView.exists`.
    """
    column = nodes.snapshot.label_column(requirement.key)
    return column.table(requirement)[nodes.take(column.codes)]


def selector_mask(nodes: NodeView, selector: Selector) -> BoolArray:
    """``bool[nodes]``: where a label selector matches."""
    if selector.matches_nothing:
        return np.zeros(len(nodes), dtype=np.bool_)
    return _requirements_mask(nodes, selector.requirements)


def _requirements_mask(nodes: NodeView, requirements: Iterable[Requirement]) -> BoolArray:
    """``bool[nodes]``: where all requirements hold; the nodes are visited once per label."""
    by_key: dict[str, list[Requirement]] = {}
    for requirement in requirements:
        by_key.setdefault(requirement.key, []).append(requirement)
    mask = np.ones(len(nodes), dtype=np.bool_)
    for key, of_key in by_key.items():
        column = nodes.snapshot.label_column(key)
        if column.num_values:
            mask &= column.table_of_all(of_key)[nodes.take(column.codes)]
        elif not all(each.matches_value(None) for each in of_key):
            return np.zeros(len(nodes), dtype=np.bool_)
    return mask


def node_term_mask(nodes: NodeView, term: NodeTerm) -> BoolArray:
    """``bool[nodes]``: where a node selector term matches; nowhere if the term is invalid."""
    if term.error:
        return np.zeros(len(nodes), dtype=np.bool_)
    mask = _requirements_mask(nodes, term.labels)
    for requirement in term.fields:
        mask &= _field_mask(nodes, requirement)
    return mask


def preferred_terms_weights(nodes: NodeView, terms: Iterable[PreferredTerm]) -> Int64Array:
    """``int64[nodes]``: the sum of the weights of the terms that match each node.

    A term with one requirement, about a label or the name, costs time by the values that it names,
    not by the number of nodes: its weight is added per value of the label, or in one row. Many
    terms with several requirements are combined as sets of rows, see `TermBits`.
    """
    return _sum_of_weights(nodes, [(each.term, each.weight) for each in terms])


def _sum_of_weights(nodes: NodeView, weighted: Sequence[tuple[NodeTerm, int]]) -> Int64Array:
    bits = TermBits(nodes.snapshot) if len(weighted) >= _MANY_TERMS else None
    of_bits = SumsOfWeights(bits) if bits else None
    weights: Int64Array = np.zeros(len(nodes), dtype=np.int64)
    by_key: dict[str, _WeightsByValue] = {}
    by_name: _WeightsByName | None = None
    for term, weight in weighted:
        labels, fields = term.labels, term.fields
        if len(labels) + len(fields) != 1 and bits is not None and of_bits is not None:
            of_bits.add(bits.of(term), weight)
        elif term.error or len(labels) + len(fields) != 1:
            weights += node_term_mask(nodes, term) * weight
        elif labels:
            key = labels[0].key
            of_key = by_key.get(key)
            if of_key is None:
                of_key = by_key[key] = _WeightsByValue(nodes.snapshot.label_column(key))
            of_key.add(labels[0], weight)
        elif fields[0].key == NODE_NAME_FIELD:
            by_name = by_name or _WeightsByName(nodes.snapshot)
            by_name.add(fields[0], weight)
        else:
            weights += _field_mask(nodes, fields[0]) * weight
    for of_key in by_key.values():
        total = of_key.total()
        has_values = len(total) > 1
        weights += total[nodes.take(of_key.column.codes)] if has_values else int(total[0])
    if by_name is not None:
        weights += nodes.take(by_name.total())
    if of_bits is not None:
        weights += nodes.take(of_bits.total(nodes.snapshot.num_rows))
    return weights


class _WeightsByValue:
    """Sums of weights per value of a label, and for nodes without the label."""

    __slots__ = ("_absent", "_bounds", "_everywhere", "_table", "column")

    def __init__(self, column: LabelColumn) -> None:
        self.column = column
        self._everywhere = 0
        self._absent = 0
        self._bounds: dict[Operator, list[tuple[int, int]]] = {}
        self._table: Int64Array = np.zeros(column.num_values + 1, dtype=np.int64)

    def add(self, requirement: Requirement, weight: int) -> None:
        """Add a weight where a requirement holds."""
        operator = requirement.operator
        if operator in _SETS:
            if operator is Operator.NOT_IN:
                self._everywhere += weight
                weight = -weight
            for value in requirement.values:
                code = self.column.values.get(value)
                if code != ABSENT:
                    self._table[code] += weight
        elif operator is Operator.EXISTS:
            self._everywhere += weight
            self._absent -= weight
        elif operator is Operator.DOES_NOT_EXIST:
            self._absent += weight
        else:
            bound = parse_int64(requirement.values[0])
            if bound is not None:
                self._bounds.setdefault(operator, []).append((bound, weight))

    def total(self) -> Int64Array:
        """``int64[num_values + 1]``; the last entry is for nodes without the label."""
        total = self._table + self._everywhere
        total[-1] += self._absent
        for operator, bounds in self._bounds.items():
            codes, numbers = self.column.integers()
            total[codes] += _weights_beyond(numbers, sorted(bounds), operator)
        return total


def _weights_beyond(
    numbers: Int64Array, bounds: Sequence[tuple[int, int]], operator: Operator
) -> Int64Array:
    """``int64[numbers]``: the sum of the weights of the bounds (ascending) that a number exceeds.

    With Lt, of those that it is below.
    """
    ascending = np.array([bound for bound, _ in bounds], dtype=np.int64)
    sums = np.cumsum([0, *(weight for _, weight in bounds)], dtype=np.int64)
    if operator is Operator.GT:
        return sums[np.searchsorted(ascending, numbers, side="left")]
    below: Int64Array = sums[-1] - sums[np.searchsorted(ascending, numbers, side="right")]
    return below


class _WeightsByName:
    """Sums of weights per row, of requirements that hold for one node or for all others."""

    __slots__ = ("_everywhere", "_snapshot", "_table")

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._everywhere = 0
        self._table: Int64Array = np.zeros(snapshot.num_rows, dtype=np.int64)

    def add(self, requirement: Requirement, weight: int) -> None:
        """Add a weight where a requirement, In or NotIn with one name, holds."""
        if requirement.operator is Operator.NOT_IN:
            self._everywhere += weight
            weight = -weight
        (name,) = requirement.values
        row = self._snapshot.row_of(name)
        if row is not None:
            self._table[row] += weight

    def total(self) -> Int64Array:
        """``int64[rows]``."""
        return self._table + self._everywhere


def node_terms_mask(nodes: NodeView, terms: NodeTerms) -> BoolArray:
    """``bool[nodes]``: where some term of a node selector matches.

    If none matches and ``terms.error`` is not empty, kube-scheduler reports the problem as an
    error instead of a mismatch; the caller does that.
    """
    if len(terms.terms) >= _MANY_TERMS:
        some_match: BoolArray = _sum_of_weights(nodes, [(term, 1) for term in terms.terms]) > 0
        return some_match
    mask = np.zeros(len(nodes), dtype=np.bool_)
    for term in terms.terms:
        mask |= node_term_mask(nodes, term)
    return mask


def required_affinity_mask(nodes: NodeView, required: RequiredNodeAffinity) -> BoolArray:
    """``bool[nodes]``: where ``nodeSelector`` and required node affinity match.

    For invalid terms see `node_terms_mask`.
    """
    mask = np.ones(len(nodes), dtype=np.bool_)
    if required.node_selector is not None:
        mask &= selector_mask(nodes, required.node_selector)
    if required.terms is not None:
        mask &= node_terms_mask(nodes, required.terms)
    return mask


def untolerated_taint_counts(
    snapshot: Snapshot,
    tolerations: Sequence[Toleration],
    effects: Collection[str],
    *,
    compares: bool = False,
) -> Int64Array:
    """How many taints with one of `effects` each distinct taint set has that are not tolerated.

    Args:
        snapshot: The cluster.
        tolerations: Those of a pod.
        effects: The effects of the taints that count.
        compares: Whether the operators Lt and Gt compare numbers.

    Returns:
        ``int64[taint sets]``; index it by ``nodes.taint_set``.
    """
    by_key: dict[str, list[Toleration]] = {}
    for toleration in tolerations:
        by_key.setdefault(toleration.key, []).append(toleration)
    known: dict[Taint, bool] = {}

    def is_untolerated(taint: Taint) -> bool:
        judged = known.get(taint)
        if judged is None:
            # Skips tolerations with another key, of which there may be thousands.
            judged = known[taint] = not (
                tolerated(taint, by_key.get(taint.key, ()), compares=compares)
                or tolerated(taint, by_key.get("", ()), compares=compares)
            )
        return judged

    counts = np.zeros(len(snapshot.taint_sets), dtype=np.int64)
    for code, taints in enumerate(snapshot.taint_sets):
        if taints:
            counts[code] = sum(each.effect in effects and is_untolerated(each) for each in taints)
    return counts


def tolerated_taint_sets(
    snapshot: Snapshot,
    tolerations: Sequence[Toleration],
    effects: Collection[str],
    *,
    compares: bool = False,
) -> BoolArray:
    """Which distinct taint sets have no untolerated taint with one of `effects`.

    The arguments are those of `untolerated_taint_counts`.

    Returns:
        ``bool[taint sets]``; index it by ``nodes.taint_set``.
    """
    counts = untolerated_taint_counts(snapshot, tolerations, effects, compares=compares)
    all_tolerated: BoolArray = counts == 0
    return all_tolerated


def _field_mask(nodes: NodeView, requirement: Requirement) -> BoolArray:
    """Where a requirement on a field holds; fields other than the name count as empty.

    Field requirements allow only In and NotIn with one value, so one row differs from the others.
    """
    snapshot = nodes.snapshot
    if requirement.key != NODE_NAME_FIELD:
        return np.full(len(nodes), requirement.matches_value(""), dtype=np.bool_)
    mask = np.full(snapshot.num_rows, requirement.matches_value(None), dtype=np.bool_)
    for name in requirement.values:
        row = snapshot.row_of(name)
        if row is not None:
            mask[row] = requirement.matches_value(name)
    return nodes.take(mask)
