"""Devices of nodes: groups of a node file, and the ResourceSlices made of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from simcluster.kinds.resources import NODES, RESOURCE_SLICES
from simcluster.kubelet.node_file import read_node_file
from simcluster.tests.support.manual_cluster import ManualCluster

Json = dict[str, Any]

GPUS = """
- count: 1
  name: gpu
  capacity: {cpu: "8"}
  devices:
  - driver: gpu.example.com
    name: gpu
    count: 2
    attributes: {model: a, index: 1, ecc: true, firmware: {version: 1.2.3}}
    capacity: {memory: 1.5Gi}
    taints: [{key: example.com/broken, effect: NoSchedule}]
  - driver: gpu.example.com
    name: split
    count: 9
    counters: {memory: 80Gi}
    partitions:
    - {name: half, count: 2, counters: {memory: 40Gi}, capacity: {memory: 40Gi}}
    - {name: whole, counters: {memory: 80Gi}, attributes: {model: b}}
  - {driver: nic.example.com, count: 1, pool: rack/1, allowMultipleAllocations: true}
"""


def published(cluster: ManualCluster) -> dict[str, Json]:
    return {each["metadata"]["name"]: each["spec"] for each in cluster.all(RESOURCE_SLICES)}


def of_file(tmp_path: Path, text: str = GPUS) -> ManualCluster:
    path = tmp_path / "nodes.yaml"
    path.write_text(text)
    cluster = ManualCluster(num_nodes=0)
    for node in read_node_file(path):
        cluster.create(NODES, node)
    cluster.settle()
    return cluster


def with_devices(*groups: Json) -> ManualCluster:
    cluster = ManualCluster(num_nodes=0)
    cluster.add_node("n", annotations={"stowage/devices": json.dumps(groups)})
    cluster.settle()
    return cluster


def test_a_device_has_typed_attributes_canonical_amounts_and_taints(tmp_path: Path) -> None:
    spec = published(of_file(tmp_path))["gpu-0-gpu.example.com-2"]
    device = spec["devices"][0]
    assert device["name"] == "gpu-0"
    assert device["attributes"] == {
        "model": {"string": "a"},
        "index": {"int": 1},
        "ecc": {"bool": True},
        "firmware": {"version": "1.2.3"},
    }
    assert device["capacity"] == {"memory": {"value": "1536Mi"}}
    [taint] = device["taints"]
    assert (taint["key"], taint["effect"]) == ("example.com/broken", "NoSchedule")
    assert spec["nodeName"] == "gpu-0"
    assert spec["driver"] == "gpu.example.com"


def test_partitions_share_the_counters_of_their_device(tmp_path: Path) -> None:
    slices = published(of_file(tmp_path))
    first = slices["gpu-0-gpu.example.com-0"]["sharedCounters"]
    assert first[0] == {"name": "split-0", "counters": {"memory": {"value": "80Gi"}}}
    assert len(first) == 8
    assert len(slices["gpu-0-gpu.example.com-1"]["sharedCounters"]) == 1
    devices = {each["name"]: each for each in slices["gpu-0-gpu.example.com-2"]["devices"]}
    assert len(devices) == 2 + 9 * 3
    counters = {"memory": {"value": "40Gi"}}
    assert devices["split-0-half-1"]["consumesCounters"] == [
        {"counterSet": "split-0", "counters": counters}
    ]
    assert devices["split-8-whole"]["attributes"] == {"model": {"string": "b"}}
    assert "split-0" not in devices


def test_the_slices_of_a_pool_name_their_number_and_their_node_as_owner(tmp_path: Path) -> None:
    cluster = of_file(tmp_path)
    pools = {name: spec["pool"] for name, spec in published(cluster).items()}
    gpus = {"name": "gpu-0", "generation": 1, "resourceSliceCount": 3}
    assert [pools[f"gpu-0-gpu.example.com-{number}"] for number in range(3)] == [gpus] * 3
    assert pools["gpu-0-nic.example.com-0"]["name"] == "rack/1"
    assert len(pools) == 4
    cluster.delete(NODES, "gpu-0")
    assert published(cluster) == {}


def test_many_devices_are_divided_into_slices() -> None:
    slices = published(with_devices({"driver": "d", "count": 130}))
    assert [len(spec["devices"]) for spec in slices.values()] == [64, 64, 2]
    assert slices["n-d-2"]["devices"][1]["name"] == "device-129"


def test_changed_devices_are_the_next_generation_of_their_pool() -> None:
    cluster = with_devices({"driver": "d", "count": 130}, {"driver": "e", "count": 1})
    kept = cluster.find(RESOURCE_SLICES, "n-e-0")

    def change(obj: Json) -> None:
        groups = [{"driver": "d", "count": 3}, {"driver": "e", "count": 1}]
        obj["metadata"]["annotations"]["stowage/devices"] = json.dumps(groups)

    cluster.change(NODES, "n", change)
    slices = published(cluster)
    assert list(slices) == ["n-d-0", "n-e-0"]
    assert slices["n-d-0"]["pool"] == {"name": "n", "generation": 2, "resourceSliceCount": 1}
    assert cluster.find(RESOURCE_SLICES, "n-e-0") is kept
    cluster.change(NODES, "n", lambda obj: obj["metadata"].pop("annotations"))
    assert published(cluster) == {}


def test_slices_that_are_right_already_are_left_alone() -> None:
    taint = {"key": "a", "effect": "NoExecute"}
    cluster = with_devices({"driver": "d", "count": 1, "taints": [taint]})
    before = cluster.find(RESOURCE_SLICES, "n-d-0")
    text = cluster.get(NODES, "n")["metadata"]["annotations"]["stowage/devices"]
    cluster.change(
        NODES,
        "n",
        lambda obj: obj["metadata"]["annotations"].update({"stowage/devices": f"{text} "}),
    )
    assert cluster.find(RESOURCE_SLICES, "n-d-0") is before


@pytest.mark.parametrize(
    "text", ["no JSON", '[{"driver": "d", "count": 1, "name": "Bad Name"}]'], ids=["text", "name"]
)
def test_an_annotation_that_is_wrong_publishes_nothing(text: str) -> None:
    cluster = ManualCluster(num_nodes=0)
    cluster.add_node("n", annotations={"stowage/devices": text})
    cluster.settle()
    assert published(cluster) == {}


@pytest.mark.parametrize(
    ("devices", "problem"),
    [
        ("[{count: 1}]", r"missing required field `driver` - at `\$\[0\]\.devices\[0\]`"),
        ("[{driver: d, count: -1}]", "Expected `int` >= 0"),
        ("[{driver: d, count: 1, colour: red}]", "unknown field `colour`"),
        (
            "[{driver: Bad_Driver, count: 1}]",
            r"\$\[0\]\.devices: spec\.driver: Invalid value",
        ),
        (
            "[{driver: d, count: 1, capacity: {memory: much}}]",
            r"\$\[0\]\.devices\[0\]\.capacity\.memory: ",
        ),
        (
            "[{driver: d, count: 1, partitions: [{name: p, counters: {m: 1}}]}]",
            r"\$\[0\]\.devices\[0\]\.partitions\[0\]\.counters\.m: the devices have no such",
        ),
        (
            "[{driver: d, count: 1}, {driver: d, count: 1, partitions: [], name: device}]",
            None,
        ),
    ],
)
def test_mistakes_in_a_node_file_are_reported(
    tmp_path: Path, devices: str, problem: str | None
) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(f"- {{count: 1, capacity: {{}}, devices: {devices}}}")
    if problem is None:
        assert len(read_node_file(path)) == 1
        return
    with pytest.raises(ValueError, match=problem):
        read_node_file(path)
