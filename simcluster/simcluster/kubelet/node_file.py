"""Node files of ``stowage cluster --node-file``: groups of equal nodes.

A YAML list; every field but ``count`` and ``capacity`` may be left out::

    - count: 3
      name: worker                    # worker-0, worker-1, worker-2
      zones: [zone-a, zone-b]         # assigned in turn
      labels: {disk: ssd}
      annotations: {}
      taints: [{key: dedicated, value: batch, effect: NoSchedule}]
      capacity: {cpu: "4", memory: 16Gi, pods: "110"}
      allocatable: {cpu: 3800m}       # differences from the capacity
      images: [{names: [registry.example/web:1], sizeBytes: 100000000}]
      unschedulable: false
      csiDrivers: disk.example.com=25
      devices:                        # see device_slices
      - {driver: gpu.example.com, name: gpu, count: 8, attributes: {model: a}}
      podStartSeconds: 2
      podFailureRate: 0.1
      jobRunSeconds: 30
      stopAfterSeconds: 60            # the kubelet stops
      state: not-ready                # words of the annotation stowage/node-state
"""

from collections import Counter
from pathlib import Path

import msgspec
import yaml

from simcluster.apiserver.yaml_text import load_yaml
from simcluster.kubelet.csi_nodes import CSI_DRIVERS
from simcluster.kubelet.device_slices import DEVICES, DeviceGroup, problems_of
from simcluster.kubelet.node_state import (
    JOB_RUN,
    NODE_STATE,
    POD_FAILURE_RATE,
    POD_START,
    STOP_AFTER,
    node_behaviour,
)
from simcluster.kubelet.nodes import ZONE, make_node
from simcluster.values import Json
from stowage.api import QuantityError, parse_quantity


class _Taint(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    key: str
    effect: str
    value: str = ""


class _Image(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    names: list[str]
    size_bytes: int = 0


class NodeGroup(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """One entry of a node file."""

    count: int
    capacity: dict[str, str | int]
    name: str = "node"
    zones: list[str] = []
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: list[_Taint] = []
    allocatable: dict[str, str | int] = {}
    images: list[_Image] = []
    unschedulable: bool = False
    csi_drivers: str = ""
    devices: list[DeviceGroup] = []
    pod_start_seconds: float | None = None
    pod_failure_rate: float | None = None
    job_run_seconds: float | None = None
    stop_after_seconds: float | None = None
    state: str = ""


def read_node_file(path: Path) -> list[Json]:
    """The nodes of a node file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no list of groups; the text names the field and the expected value.
    """
    try:
        content = load_yaml(path.read_bytes())
        groups = msgspec.convert(content, list[NodeGroup])
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: {error}") from error
    except msgspec.ValidationError as error:
        raise ValueError(f"{path}: {error}") from error
    nodes: list[Json] = []
    for position, group in enumerate(groups):
        _check(f"{path}: $[{position}]", group)
        nodes += [_node(group, index) for index in range(group.count)]
    counts = Counter(node["metadata"]["name"] for node in nodes)
    name, count = max(counts.items(), key=lambda item: item[1], default=("", 0))
    if count > 1:
        raise ValueError(f"{path}: {count} nodes are named {name} (give the groups names)")
    return nodes


def _check(where: str, group: NodeGroup) -> None:
    if group.count < 0:
        raise ValueError(f"{where}.count: {group.count} (expected 0 or more)")
    for field in ("capacity", "allocatable"):
        for resource, amount in getattr(group, field).items():
            try:
                parse_quantity(str(amount))
            except QuantityError as error:
                raise ValueError(f"{where}.{field}.{resource}: {error}") from error
    if wrong := problems_of(group.devices):
        raise ValueError(f"{where}.devices{wrong[0]}")
    problems = node_behaviour({"metadata": {"annotations": _annotations(group)}}).problems
    if problems:
        raise ValueError(f"{where}: {problems[0]}")


def _annotations(group: NodeGroup) -> dict[str, str]:
    said = {
        NODE_STATE: group.state or None,
        CSI_DRIVERS: group.csi_drivers or None,
        DEVICES: msgspec.json.encode(group.devices).decode() if group.devices else None,
        POD_START: group.pod_start_seconds,
        POD_FAILURE_RATE: group.pod_failure_rate,
        JOB_RUN: group.job_run_seconds,
        STOP_AFTER: group.stop_after_seconds,
    }
    written = {name: f"{value}" for name, value in said.items() if value is not None}
    return {**group.annotations, **written}


def _node(group: NodeGroup, index: int) -> Json:
    labels = dict(group.labels)
    if group.zones:
        labels.setdefault(ZONE, group.zones[index % len(group.zones)])
    capacity = {"pods": "110", **{name: str(value) for name, value in group.capacity.items()}}
    taints = [msgspec.to_builtins(taint) for taint in group.taints]
    node = make_node(f"{group.name}-{index}", capacity, labels, taints)
    annotations = _annotations(group)
    if annotations:
        node["metadata"]["annotations"] = annotations
    if group.unschedulable:
        node["spec"]["unschedulable"] = True
    status = node["status"]
    status["allocatable"] |= {name: str(value) for name, value in group.allocatable.items()}
    if group.images:
        status["images"] = [msgspec.to_builtins(image) for image in group.images]
    return node
