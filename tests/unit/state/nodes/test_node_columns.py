"""Nodes are rows of columns, with or without a node object."""

from __future__ import annotations

import numpy as np
import pytest

from stowage.api.decoding.errors import InvalidObject
from stowage.api.objects.node import ContainerImage, Taint
from stowage.state import CPU, MEMORY, PODS, PodClass, PodClasses, make_pod_info
from stowage.state.nodes.node_columns import NodeColumns
from tests.support.builders import make_node, make_pod

GPU = "example.com/gpu"


@pytest.fixture
def columns() -> NodeColumns:
    return NodeColumns()


def pod_class(cpu: str = "1", **requests: str) -> PodClass:
    return make_pod_info(make_pod(cpu=cpu, requests=requests), PodClasses()).pod_class


def test_a_node_fills_its_row(columns: NodeColumns) -> None:
    taint = Taint("gpu", "yes", "NoSchedule", time_added="2026-01-01T00:00:00Z")
    node = make_node(
        "n", cpu="1500m", memory="1Gi", pods=5, taints=[taint], unschedulable=True,
        declared_features=["F"],
    )  # fmt: skip
    row = columns.set_node(node)
    assert columns.exists[row]
    assert columns.allocatable[row, [CPU, MEMORY, PODS]].tolist() == [1500, 2**30, 5]
    assert columns.unschedulable[row]
    taints = columns.taint_sets.values[columns.taint_set[row]]
    assert taints == (Taint("gpu", "yes", "NoSchedule"),)
    assert columns.feature_sets.values[columns.feature_set[row]] == frozenset(["F"])


def test_sets_of_taints_and_features_that_no_node_has_any_more_are_forgotten(
    columns: NodeColumns,
) -> None:
    for number in range(50):
        taint, feature = Taint(f"t{number}", "", "NoSchedule"), f"F{number}"
        columns.set_node(make_node("n", taints=[taint], declared_features=[feature]))
    assert len(list(columns.taint_sets)) == len(list(columns.feature_sets)) == 2  # and empty sets


def test_a_resource_gets_a_column_with_its_first_node(columns: NodeColumns) -> None:
    plain = columns.set_node(make_node("plain"))
    assert columns.resources.index_of(GPU) is None
    rich = columns.set_node(make_node("rich", allocatable={GPU: "8"}))
    gpu = columns.resources.index_of(GPU)
    assert columns.allocatable[[plain, rich], gpu].tolist() == [0, 8]
    assert columns.requested.shape == columns.allocatable.shape


def test_a_requested_resource_that_no_node_has_gets_no_column(columns: NodeColumns) -> None:
    row = columns.set_node(make_node("n"))
    width = columns.requested.shape[1]
    pods = [pod_class("1", **{f"example.com/r{index}": "2"}) for index in range(100)]
    for each in pods:
        columns.add_pod(row, each)
    assert columns.requested.shape[1] == len(columns.request_vector(pods[0])) == width
    assert columns.requested_by_name()[row]["example.com/r7"] == 2
    for each in pods:
        columns.remove_pod(row, each)
    assert columns.requested_by_name()[row] == {}


def test_requests_are_kept_while_no_node_has_the_resource(
    columns: NodeColumns,
) -> None:
    row = columns.set_node(make_node("n"))
    columns.add_pod(row, pod_class("1", **{GPU: "2"}))
    other = columns.set_node(make_node("rich", allocatable={GPU: "8"}))
    gpu = columns.resources.index_of(GPU)
    assert columns.requested[[row, other], gpu].tolist() == [2, 0]
    columns.set_node(make_node("rich"))
    assert columns.resources.index_of(GPU) is None
    assert columns.requested_by_name()[row][GPU] == 2
    columns.set_node(make_node("rich", allocatable={"example.com/fpga": "1"}))
    assert columns.resources.index_of("example.com/fpga") == gpu
    assert columns.requested[:, gpu].tolist() == [0] * columns.num_rows
    assert columns.requested_by_name()[row][GPU] == 2


def test_equal_amounts_of_different_resources_in_one_column_differ(
    columns: NodeColumns,
) -> None:
    row = columns.set_node(make_node("n", allocatable={GPU: "8"}))
    before = columns.amounts(row)
    columns.set_node(make_node("n"))
    columns.set_node(make_node("n", allocatable={"example.com/fpga": "8"}))
    assert columns.amounts(row)[1:] == before[1:]
    assert columns.amounts(row) != before


def test_a_resource_that_a_node_no_longer_has_is_zero_again(columns: NodeColumns) -> None:
    columns.set_node(make_node("other", allocatable={GPU: "8"}))
    for allocatable, want in (({GPU: "8"}, 8), ({}, 0)):
        row = columns.set_node(make_node("n", allocatable=allocatable))
        assert columns.allocatable[row, columns.resources.index_of(GPU)] == want


def test_requests_of_pods_are_added_and_subtracted(columns: NodeColumns) -> None:
    row = columns.set_node(make_node("n"))
    one, two = pod_class("1"), pod_class("250m")
    columns.add_pod(row, one)
    columns.add_pod(row, two)
    assert columns.requested[row, CPU] == 1250
    assert columns.nonzero_requested[row].tolist() == [1250, 2 * 200 * 2**20]
    columns.remove_pod(row, one)
    assert columns.requested[row, CPU] == 250
    assert columns.num_pods[row] == 1


def test_sums_beyond_int64_wrap_and_unwrap(columns: NodeColumns) -> None:
    row = columns.set_node(make_node("n"))
    huge = pod_class("1", memory="7E")
    columns.add_pod(row, huge)
    columns.add_pod(row, huge)
    assert columns.requested[row, MEMORY] == 14 * 10**18 - 2**64
    columns.remove_pod(row, huge)
    assert columns.requested[row, MEMORY] == 7 * 10**18


def test_a_row_without_a_node_object_and_pods_is_reused(columns: NodeColumns) -> None:
    row = columns.set_node(make_node("n", taints=[Taint("a", "", "NoSchedule")]))
    columns.add_pod(row, pod_class())
    columns.unset_node(row)
    columns.free_if_unused(row)
    assert columns.row_of("n") == row
    assert not columns.exists[row]
    assert columns.taint_set[row] == 0
    columns.remove_pod(row, pod_class())
    columns.free_if_unused(row)
    assert columns.row_of("n") is None
    assert columns.set_node(make_node("m")) == row


def test_a_row_that_storage_objects_hold_is_reused_after_the_last_has_released_it(
    columns: NodeColumns,
) -> None:
    row = columns.hold("n")
    assert columns.hold("n") == row
    columns.release(row)
    assert columns.is_held(row)
    assert columns.row_of("n") == row
    columns.release(row)
    assert not columns.is_held(row)
    assert columns.row_of("n") is None


def test_columns_grow_with_the_cluster(columns: NodeColumns) -> None:
    rows = [columns.set_node(make_node(f"n{index}", cpu=str(index))) for index in range(200)]
    assert columns.num_rows == len(columns.exists) == len(columns.names)
    assert columns.num_rows % 64 == 0
    assert len(set(rows)) == columns.num_nodes == 200
    assert columns.allocatable[rows, CPU].tolist() == [1000 * index for index in range(200)]


def test_published_arrays_are_read_only(columns: NodeColumns) -> None:
    columns.set_node(make_node("n"))
    for array in (columns.allocatable, columns.requested, columns.exists, columns.taint_set):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_an_invalid_node_changes_nothing(columns: NodeColumns) -> None:
    row = columns.set_node(make_node("n", cpu="4"))
    before = columns.node_changes.generation
    with pytest.raises(InvalidObject, match=r"Node n: status.allocatable\[cpu\]"):
        columns.set_node(make_node("n", cpu="much"))
    assert columns.allocatable[row, CPU] == 4000
    assert columns.node_changes.generation == before


def test_an_amount_beyond_int64_is_an_error(columns: NodeColumns) -> None:
    with pytest.raises(InvalidObject, match="memory"):
        columns.set_node(make_node("n", memory="10E"))


def test_an_image_has_the_size_of_its_first_node_and_all_its_nodes(columns: NodeColumns) -> None:
    one = columns.set_node(make_node("one", images=[ContainerImage(("i:1", "i@x"), 10)]))
    two = columns.set_node(make_node("two", images=[ContainerImage(("i:1",), 99)]))
    image = columns.images.get("i:1")
    assert image is not None
    assert (image.size_bytes, image.num_nodes) == (10, 2)
    assert np.flatnonzero(image.on_node).tolist() == sorted([one, two])
    columns.unset_node(one)
    assert (image.size_bytes, image.num_nodes) == (10, 1)
    assert columns.images.get("i@x") is None
    columns.set_node(make_node("two", images=[ContainerImage(("i:1",), 98)]))
    again = columns.images.get("i:1")
    assert again is not None
    assert again.size_bytes == 98


def test_equal_images_of_many_nodes_are_one_object(columns: NodeColumns) -> None:
    rows = [
        columns.set_node(make_node(name, images=[ContainerImage(("i:1",), 10)])) for name in "ab"
    ]
    first, second = (columns.nodes[row] for row in rows)
    assert first is not None
    assert second is not None
    assert first.status.images[0] is second.status.images[0]
