"""Validation of the state, step by step: recounts everything from the objects and compares.

A step looks at one row, some rows without a node, one selector on some rows, or some storage
objects, so that it is short however large the cluster is. The state may change between two steps:
a step keeps nothing of it but names, and looks everything up again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stowage.api.values.resources import node_allocatable
from stowage.state.arrays import wrapped_int64
from stowage.state.cluster_state import ClusterState
from stowage.state.devices.validation import device_validation_steps
from stowage.state.nodes.node_columns import NodeColumns
from stowage.state.nodes.resource_index import ResourceIndex
from stowage.state.nodes.search_order import zone_of_labels
from stowage.state.pods.validation import check_groups_of_row, check_terms_of_row, pod_count_steps
from stowage.state.storage.validation import check_volumes_of_row, storage_validation_steps
from stowage.state.violation import InvariantViolation, expect

__all__ = ["InvariantViolation", "state_validation_steps"]

_ROWS_AT_ONCE = 64


def state_validation_steps(state: ClusterState) -> Iterator[None]:
    """Recount everything and compare, one step between two values.

    Raises:
        InvariantViolation: A column or count differs from the recount.
    """
    row = 0
    while row < state.columns.num_rows:
        if not state.columns.names[row] and (end := _end_of_blank_rows(state, row)) > row:
            row = end
        else:
            _check_row(state, row)
            row += 1
        yield
    yield from _column_steps(state)
    yield from pod_count_steps(state)
    yield from storage_validation_steps(state)
    yield from device_validation_steps(state.devices, state.columns)


def _end_of_blank_rows(state: ClusterState, first: int) -> int:
    """The row after some rows from `first` on in which nothing is; `first` if something is in one.

    Columns are longer than the cluster is large, and rows one after another cost far less at once.
    """
    columns, names = state.columns, state.columns.names
    end = first + 1
    while end < min(first + _ROWS_AT_ONCE, columns.num_rows) and not names[end]:
        end += 1
    rows = slice(first, end)
    has_amounts = any(
        each[rows].any()
        for each in (
            columns.exists,
            columns.allocatable,
            columns.requested,
            columns.nonzero_requested,
            columns.num_pods,
            columns.taint_set,
            columns.feature_set,
            columns.unschedulable,
        )
    )
    has_labels = any((each.codes[rows] >= 0).any() for each in columns.labels.built().values())
    is_blank = not (has_amounts or has_labels)
    if is_blank and all(_has_no_objects(state, row) for row in range(first, end)):
        return end
    return first


def _has_no_objects(state: ClusterState, row: int) -> bool:
    """Whether no object is in a row without a name, nor counted there."""
    columns = state.columns
    return not (
        columns.nodes[row] is not None
        or state.placed.on_row(row)
        or columns.is_held(row)
        or any(
            columns.requested_elsewhere.at(name).get(row) for name in columns.requested_elsewhere
        )
        or columns.host_ports.on_row(row)
        or columns.search_order.zone_of(row) is not None
        or columns.images.names_on(row)
        or state.ranked.is_outdated(row)
    )


def _check_row(state: ClusterState, row: int) -> None:
    columns, name = state.columns, state.columns.names[row]
    where = f"node {name} in row {row}"
    _check_node(columns, row, where)
    _check_usage(state, row, where)
    expect(f"order of the pods on {where}", False, state.ranked.is_outdated(row))
    _check_labels(columns, row)
    _check_images(columns, row, where)
    check_terms_of_row(state, row)
    check_groups_of_row(state, row)
    check_volumes_of_row(state, row)


def _check_node(columns: NodeColumns, row: int, where: str) -> None:
    node, name = columns.nodes[row], columns.names[row]
    expect(f"exists of {where}", node is not None, bool(columns.exists[row]))
    if name:
        expect(f"row of {name}", row, columns.row_of(name))
    allocatable = {} if node is None else node_allocatable(node)
    amounts = {key: amount for key, amount in allocatable.items() if amount}
    expect(f"allocatable of {where}", amounts, _amounts(columns, row))
    without = [key for key in allocatable if columns.resources.index_of(key) is None]
    expect(f"resources of {where} without a column", [], without)
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
    is_unschedulable = node is not None and node.spec.unschedulable
    expect(f"unschedulable of {where}", is_unschedulable, bool(columns.unschedulable[row]))


def _check_usage(state: ClusterState, row: int, where: str) -> None:
    columns = state.columns
    pods, name = state.placed.on_row(row), columns.names[row]
    is_used = bool(pods) or columns.nodes[row] is not None or columns.is_held(row)
    expect(f"row in use: {where}", is_used, bool(name))
    requested: Counter[str] = Counter()
    ports: Counter[tuple[str, str, int]] = Counter()
    for pod in pods:
        expect(f"node of pod {pod.key}", name, pod.node_name)
        expect(f"pod {pod.key} by its UID", True, state.placed.get(pod.uid) is pod)
        is_counted = pod.priority in state.placed.num_by_priority
        expect(f"pod {pod.key} by its priority", True, is_counted)
        requested.update(pod.requests)
        ports.update(pod.pod_class.host_ports)
    wanted = {key: wrapped_int64(amount) for key, amount in requested.items() if amount}
    expect(f"requested of {where}", wanted, columns.requested_of(row))
    nonzero = [
        wrapped_int64(sum(pod.pod_class.nonzero_cpu_milli for pod in pods)),
        wrapped_int64(sum(pod.pod_class.nonzero_memory_bytes for pod in pods)),
    ]
    expect(f"nonzero_requested of {where}", nonzero, columns.nonzero_requested[row].tolist())
    expect(f"num_pods of {where}", len(pods), int(columns.num_pods[row]))
    expect(f"host ports of {where}", dict(ports), columns.host_ports.on_row(row))


def _check_labels(columns: NodeColumns, row: int) -> None:
    node = columns.nodes[row]
    labels = {} if node is None else node.metadata.labels
    for key, column in columns.labels.built().items():
        found = column.value(int(column.codes[row]))
        expect(f"label {key} of row {row}", labels.get(key), found)
    zone = None if node is None else zone_of_labels(labels)
    expect(f"zone of row {row} in the search order", zone, columns.search_order.zone_of(row))


def _check_images(columns: NodeColumns, row: int, where: str) -> None:
    node = columns.nodes[row]
    images = () if node is None else node.status.images
    names = {name for image in images for name in image.names}
    expect(f"images of {where}", names, columns.images.names_on(row))


def _column_steps(state: ClusterState) -> Iterator[None]:
    """Check what concerns a column as a whole."""
    columns = state.columns
    num_nodes = sum(node is not None for node in columns.nodes)
    expect("number of nodes", num_nodes, columns.num_nodes)
    placed_by_row = sum(len(state.placed.on_row(row)) for row in range(columns.num_rows))
    expect("pods by row", len(state.placed), placed_by_row)
    placed_by_priority = sum(state.placed.num_by_priority.values())
    expect("pods by priority", len(state.placed), placed_by_priority)
    yield
    for key in tuple(columns.labels.built()):
        column = columns.labels.built().get(key)
        if column is not None:
            used = {column.value(code) for code in set(column.codes.tolist())} - {None}
            expect(f"values of label {key}", used, set(column.values))
        yield
    standard = ResourceIndex().names
    for name in tuple(columns.resources.names):
        if name and name not in standard and columns.resources.index_of(name) is not None:
            held = any(
                node is not None and name in node.status.allocatable for node in columns.nodes
            )
            expect(f"some node has the resource {name}", True, held)
        yield


def _amounts(columns: NodeColumns, row: int) -> dict[str, int]:
    amounts = zip(columns.resources.names, columns.allocatable[row].tolist(), strict=True)
    return {name: amount for name, amount in amounts if amount}
