"""The rows of the nodes that a slice is for, found for all nodes at once."""

from __future__ import annotations

import numpy as np

from stowage.api.values.node_affinity import NODE_NAME_FIELD, NodeTerm, NodeTerms
from stowage.api.values.selectors import Operator, Requirement
from stowage.state.arrays import BoolArray
from stowage.state.devices.device_info import NodeCondition, SliceInfo
from stowage.state.nodes.node_columns import NodeColumns


def rows_using(info: SliceInfo, nodes: NodeColumns) -> BoolArray:
    """``bool[rows]``: the nodes that may get devices of a slice, or need its counters.

    Where `SliceInfo.is_relevant` raises an error, the slice counts as used: who asks for the pools
    of the node gets the error.
    """
    if info.counter_sets:
        return nodes.exists.copy()
    conditions: list[NodeCondition | None] = [info.nodes]
    if info.nodes is None:
        conditions = [each.nodes for each in info.devices] if info.is_per_device else []
    mask = np.zeros(nodes.num_rows, dtype=np.bool_)
    for condition in conditions:
        if condition is not None:
            _add(condition, nodes, mask)
    return mask & nodes.exists


def _add(condition: NodeCondition, nodes: NodeColumns, mask: BoolArray) -> None:
    """Add the nodes of a condition to a mask."""
    if condition.node_name:
        _add_name(condition.node_name, nodes, mask)
    elif condition.all_nodes:
        mask[:] = True
    elif condition.terms is not None:
        mask |= _terms_mask(condition.terms, nodes)


def _terms_mask(terms: NodeTerms, nodes: NodeColumns) -> BoolArray:
    """``bool[rows]``: where some term matches, or none may match because of an invalid one."""
    mask = np.full(nodes.num_rows, bool(terms.error))
    for term in terms.terms:
        mask |= _term_mask(term, nodes)
    return mask


def _term_mask(term: NodeTerm, nodes: NodeColumns) -> BoolArray:
    mask = np.full(nodes.num_rows, not term.error)
    for requirement in term.labels:
        column = nodes.labels.column(requirement.key)
        mask &= column.table(requirement)[column.codes]
    for requirement in term.fields:
        mask &= _field_mask(requirement, nodes)
    return mask


def _field_mask(requirement: Requirement, nodes: NodeColumns) -> BoolArray:
    if requirement.key != NODE_NAME_FIELD:
        return np.full(nodes.num_rows, requirement.matches_value(""))
    mask = np.zeros(nodes.num_rows, dtype=np.bool_)
    for name in requirement.values:
        _add_name(name, nodes, mask)
    # Fields have one value, and only these two operators.
    return ~mask if requirement.operator is Operator.NOT_IN else mask


def _add_name(name: str, nodes: NodeColumns, mask: BoolArray) -> None:
    row = nodes.row_of(name)
    if row is not None:
        mask[row] = True
