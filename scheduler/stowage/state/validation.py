"""Validation of the state: recounts everything from the objects and compares."""

from __future__ import annotations

from collections import Counter

import numpy as np

from stowage.api.values.resources import node_allocatable
from stowage.state.arrays import Int64Array, wrapped_int64
from stowage.state.cluster_state import ClusterState
from stowage.state.nodes.label_columns import LabelColumn
from stowage.state.nodes.node_columns import NodeColumns
from stowage.state.nodes.resource_index import ResourceIndex
from stowage.state.pods.placed_pods import PlacedPods
from stowage.state.pods.pod_counts import PodCounts
from stowage.state.pods.pod_info import PodInfo, TermKind
from stowage.state.pods.term_counts import TermCounts
from stowage.state.storage.validation import validate_storage
from stowage.state.violation import InvariantViolation, expect

__all__ = ["InvariantViolation", "validate_state"]


def validate_state(state: ClusterState) -> None:
    """Recount everything and compare.

    Raises:
        InvariantViolation: A column or count differs from the recount.
    """
    columns = state.columns
    requested = columns.requested_by_name()
    for row, name in enumerate(columns.names):
        _check_node(columns, row, name)
        _check_usage(columns, state.placed, row, requested[row])
    _check_resources(columns)
    expect("number of nodes", sum(node is not None for node in columns.nodes), columns.num_nodes)
    placed_by_row = sum(len(state.placed.on_row(row)) for row in range(columns.num_rows))
    expect("pods by row", len(state.placed), placed_by_row)
    expect("rows with wrongly ordered pods", [], list(state.ranked.outdated()))
    for column in columns.labels.built().values():
        _check_label_column(columns, column)
    _check_images(columns)
    for (selector, namespaces, skip_terminating), counts in state.pods.kept_counts():
        matching = [
            pod
            for pod in state.placed
            if (namespaces is None or pod.namespace in namespaces)
            and not (skip_terminating and pod.terminating)
            and selector.matches(pod.labels)
        ]
        _check_counts(columns, counts, matching, f"pods matching {selector} in {namespaces}")
    for which in TermKind:
        _check_existing_terms(state, which)
    validate_storage(state)


def _check_node(columns: NodeColumns, row: int, name: str) -> None:
    node = columns.nodes[row]
    where = f"node {name} in row {row}"
    expect(f"exists of {where}", node is not None, bool(columns.exists[row]))
    if name:
        expect(f"row of {name}", row, columns.row_of(name))
    allocatable = {} if node is None else {k: v for k, v in node_allocatable(node).items() if v}
    expect(f"allocatable of {where}", allocatable, _amounts(columns, row))
    taints = () if node is None else node.spec.taints
    expect(
        f"taints of {where}",
        [(taint.key, taint.value, taint.effect) for taint in taints],
        [
            (taint.key, taint.value, taint.effect)
            for taint in columns.taint_sets.values[columns.taint_set[row]] or ()
        ],
    )
    features = frozenset() if node is None else frozenset(node.status.declared_features)
    expect(f"features of {where}", features, columns.feature_sets.values[columns.feature_set[row]])
    expect(
        f"unschedulable of {where}",
        node is not None and node.spec.unschedulable,
        bool(columns.unschedulable[row]),
    )


def _check_resources(columns: NodeColumns) -> None:
    names = [*ResourceIndex().names]
    for node in columns.nodes:
        names += [] if node is None else node_allocatable(node)
    expect("resources with a column", set(names), set(filter(None, columns.resources.names)))


def _check_usage(columns: NodeColumns, placed: PlacedPods, row: int, found: dict[str, int]) -> None:
    pods, name = placed.on_row(row), columns.names[row]
    where = f"node {name} in row {row}"
    is_used = bool(pods) or columns.nodes[row] is not None or columns.is_held(row)
    expect(f"row in use: {where}", is_used, bool(name))
    requested: Counter[str] = Counter()
    ports: Counter[tuple[str, str, int]] = Counter()
    for pod in pods:
        expect(f"node of pod {pod.key}", name, pod.node_name)
        requested.update(pod.requests)
        ports.update(pod.pod_class.host_ports)
    wanted = {key: wrapped_int64(amount) for key, amount in requested.items() if amount}
    expect(f"requested of {where}", wanted, found)
    nonzero = [
        wrapped_int64(sum(pod.pod_class.nonzero_cpu_milli for pod in pods)),
        wrapped_int64(sum(pod.pod_class.nonzero_memory_bytes for pod in pods)),
    ]
    expect(f"nonzero_requested of {where}", nonzero, columns.nonzero_requested[row].tolist())
    expect(f"num_pods of {where}", len(pods), int(columns.num_pods[row]))
    expect(f"host ports of {where}", dict(ports), columns.host_ports.on_row(row))


def _check_label_column(columns: NodeColumns, column: LabelColumn) -> None:
    held: Counter[str] = Counter()
    for row, node in enumerate(columns.nodes):
        value = None if node is None else node.metadata.labels.get(column.key)
        held.update([] if value is None else [value])
        expect(f"label {column.key} of row {row}", value, column.value(int(column.codes[row])))
    expect(f"values of label {column.key}", set(held), set(column.values))


def _check_images(columns: NodeColumns) -> None:
    rows_by_name: dict[str, set[int]] = {}
    for row, node in enumerate(columns.nodes):
        for image in () if node is None else node.status.images:
            for name in image.names:
                rows_by_name.setdefault(name, set()).add(row)
    expect("image names", set(rows_by_name), set(columns.images.names()))
    for name, rows in rows_by_name.items():
        state = columns.images.get(name)
        on_node = set() if state is None else set(np.flatnonzero(state.on_node).tolist())
        expect(f"nodes with image {name}", rows, on_node)


def _check_existing_terms(state: ClusterState, which: TermKind) -> None:
    pods_with: dict[object, list[PodInfo]] = {}
    for pod in state.placed:
        for term in pod.pod_class.terms[which]:
            pods_with.setdefault(term, []).append(pod)
    existing_terms = list(state.pods.existing_terms(which))
    found = {existing.term for existing in existing_terms}
    expect(f"distinct terms of {which.value}", set(pods_with), found)
    for existing in existing_terms:
        pods = pods_with[existing.term]
        _check_counts(state.columns, existing.counts, pods, f"pods with {existing.term}")


def _check_counts(
    columns: NodeColumns, counts: PodCounts | TermCounts, pods: list[PodInfo], subject: str
) -> None:
    per_node = np.zeros(columns.num_rows, dtype=np.int64)
    for pod in pods:
        row = columns.row_of(pod.node_name)
        expect(f"{pod.key} has a row", True, row is not None)
        per_node[row] += 1
    expect(f"{subject} per node", per_node.tolist(), counts.per_node.tolist())
    expect(f"{subject} in all", len(pods), counts.total)
    for key in counts.known_domains():
        column = columns.labels.column(key)
        per_domain: Int64Array = np.zeros(column.num_values, dtype=np.int64)
        for row, code in enumerate(column.codes.tolist()):
            if code >= 0:
                per_domain[code] += per_node[row]
        found = counts.per_domain(key).tolist()
        expect(f"{subject} per {key}", per_domain.tolist(), found)


def _amounts(columns: NodeColumns, row: int) -> dict[str, int]:
    amounts = zip(columns.resources.names, columns.allocatable[row].tolist(), strict=True)
    return {name: amount for name, amount in amounts if amount}
