"""Matrices in which most columns stay untouched hold what dense matrices of plain copies hold."""

from __future__ import annotations

import mmap
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.state import PodClass, PodClasses, make_pod_info
from stowage.state.nodes import amounts
from stowage.state.nodes.amounts import copied_amounts, is_dense, zero_amounts
from stowage.state.nodes.node_columns import NodeColumns
from tests.support.builders import make_node, make_pod

RESOURCES = [f"example.com/r{number}" for number in range(12)]
NODES = [f"n{number}" for number in range(4)]
CLASSES = PodClasses()

NAMES = st.lists(st.sampled_from(RESOURCES), unique=True, max_size=6)
CHANGES = st.one_of(
    st.tuples(st.just("node"), st.sampled_from(NODES), NAMES),
    st.tuples(st.just("node"), st.sampled_from(NODES), NAMES),
    st.tuples(st.just("no node"), st.sampled_from(NODES), st.just([])),
    st.tuples(st.just("pod"), st.sampled_from(NODES), NAMES),
    st.tuples(st.just("no pod"), st.sampled_from(NODES), st.just([])),
    st.tuples(st.just("many nodes"), st.just(""), st.just([])),
)


class Cluster:
    """Nodes and pods in columns, and in plain dictionaries."""

    def __init__(self) -> None:
        self.columns = NodeColumns()
        self.allocatable: dict[str, dict[str, int]] = {}
        self.pods: dict[str, list[PodClass]] = {name: [] for name in NODES}
        self.num_others = 0

    def apply(self, what: str, name: str, resources: list[str]) -> None:
        match what:
            case "node":
                self.set_node(name, resources)
            case "no node" if self.allocatable.pop(name, None) is not None:
                row = self.columns.ensure_row(name)
                self.columns.unset_node(row)
                self.columns.free_if_unused(row)
            case "pod":
                pod = make_pod("p", requests=dict.fromkeys(resources, "2"))
                self.pods[name].append(make_pod_info(pod, CLASSES).pod_class)
                self.columns.add_pod(self.columns.ensure_row(name), self.pods[name][-1])
            case "no pod" if self.pods[name]:
                row = self.columns.ensure_row(name)
                self.columns.remove_pod(row, self.pods[name].pop())
                self.columns.free_if_unused(row)
            case "many nodes":
                for _ in range(40):
                    self.num_others += 1
                    self.set_node(f"other-{self.num_others}", [f"example.com/o{self.num_others}"])

    def set_node(self, name: str, resources: list[str]) -> None:
        numbered = {each: len(name) + at for at, each in enumerate(resources)}
        self.columns.set_node(make_node(name, allocatable={k: str(v) for k, v in numbered.items()}))
        self.allocatable[name] = numbered

    def check(self) -> None:
        columns = self.columns
        assert columns.allocatable.shape == columns.requested.shape
        assert columns.allocatable.shape == (columns.num_rows, len(columns.resources))
        for name, expected in self.allocatable.items():
            row = columns.row_of(name)
            assert row is not None
            assert extended_amounts(columns, columns.allocatable[row]) == expected
        for name, pods in self.pods.items():
            row = columns.row_of(name)
            if row is not None:
                requested = columns.requested_of(row)
                for resource in RESOURCES:
                    wanted = sum(each.requests.get(resource, 0) for each in pods)
                    assert requested.get(resource, 0) == wanted


def extended_amounts(columns: NodeColumns, amounts_of_row: Any) -> dict[str, int]:
    pairs = zip(columns.resources.names, amounts_of_row.tolist(), strict=True)
    return {name: amount for name, amount in pairs if amount and "/" in name}


@pytest.mark.parametrize("limit", [0, 2**22], ids=["wide", "dense"])
@settings(max_examples=60, deadline=None)
@given(st.lists(CHANGES, max_size=14))
def test_amounts_are_those_of_nodes_and_pods(limit: int, changes: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(amounts, "MAX_DENSE_BYTES", limit)
        cluster = Cluster()
        for change in changes:
            cluster.apply(*change)
            cluster.check()
        twin = cluster.columns.with_own_usage()
        assert np.array_equal(twin.requested, cluster.columns.requested)
        twin.add_pod(0, make_pod_info(make_pod("p"), CLASSES).pod_class)
        cluster.check()


def test_a_wide_matrix_is_copied_column_by_column() -> None:
    rows, columns = 1000, 1000
    assert not is_dense(rows, columns)
    source = zero_amounts(rows, columns)
    assert source.flags.f_contiguous
    source[:, 3] = np.arange(rows)
    source[7, 9] = 5
    copy = copied_amounts(source, rows + 1, columns + 1, [3])
    assert copy.shape == (rows + 1, columns + 1)
    assert copy[:, 3].tolist() == [*range(rows), 0]
    assert copy[7, 9] == 0
    copied_amounts(source, rows, columns, [3, 9])[7, 9] = 6
    assert source[7, 9] == 5


def test_a_system_without_huge_pages_has_wide_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(mmap, "MADV_NOHUGEPAGE", raising=False)
    assert not zero_amounts(1000, 1000).any()


def test_too_little_memory_for_a_matrix_is_a_memory_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(MemoryError, match="1000 x 1000 amounts: Cannot allocate memory"):
        zero_amounts(1000, 1000)
