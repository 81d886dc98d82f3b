"""Node files: groups of nodes, and errors for mistakes."""

from pathlib import Path

import pytest

from simcluster.kubelet.node_file import read_node_file

GROUPS = """
- count: 2
  name: worker
  zones: [a, b]
  labels: {disk: ssd}
  taints: [{key: dedicated, value: batch, effect: NoSchedule}]
  capacity: {cpu: 4, memory: 16Gi}
  allocatable: {cpu: 3800m}
  images: [{names: ["x:1"], sizeBytes: 5}]
  unschedulable: true
  csiDrivers: disk.example.com=25
  podStartSeconds: 2
  podFailureRate: 0.5
  stopAfterSeconds: 60
  state: not-ready
- count: 1
  capacity: {cpu: "1"}
"""


def read(tmp_path: Path, text: str) -> list[dict[str, object]]:
    path = tmp_path / "nodes.yaml"
    path.write_text(text)
    return read_node_file(path)


def test_groups_become_nodes(tmp_path: Path) -> None:
    first, second, third = read(tmp_path, GROUPS)
    metadata, spec, status = first["metadata"], first["spec"], first["status"]
    assert isinstance(metadata, dict)
    assert isinstance(spec, dict)
    assert isinstance(status, dict)
    assert metadata["name"] == "worker-0"
    assert metadata["labels"]["topology.kubernetes.io/zone"] == "a"
    assert metadata["labels"]["disk"] == "ssd"
    assert metadata["annotations"] == {
        "stowage/node-state": "not-ready",
        "stowage/csi-drivers": "disk.example.com=25",
        "stowage/pod-start-seconds": "2.0",
        "stowage/pod-failure-rate": "0.5",
        "stowage/stop-after-seconds": "60.0",
    }
    assert spec["taints"] == [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]
    assert spec["unschedulable"] is True
    assert status["capacity"] == {"cpu": "4", "memory": "16Gi", "pods": "110"}
    assert status["allocatable"]["cpu"] == "3800m"
    assert status["images"] == [{"names": ["x:1"], "sizeBytes": 5}]
    assert second["metadata"]["labels"]["topology.kubernetes.io/zone"] == "b"  # type: ignore[index]
    assert "annotations" not in third["metadata"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- count: 1", "missing required field `capacity`"),
        ("- {count: 1, capacity: {cpu: x}}", r"\$\[0\]\.capacity\.cpu"),
        ("- {count: -1, capacity: {}}", r"\$\[0\]\.count: -1 \(expected 0 or more\)"),
        ("- {count: 1, capacity: {}, colour: red}", "unknown field `colour`"),
        ("- {count: 1, capacity: {}, state: asleep}", "'asleep' \\(expected some of"),
        ("- {count: 1, capacity: {}}\n- {count: 1, capacity: {}}", "2 nodes are named node-0"),
        ("just text", "Expected `array`"),
        ("a: [", "nodes.yaml"),
    ],
)
def test_mistakes_are_reported(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read(tmp_path, text)
