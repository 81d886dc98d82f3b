"""The devices that the nodes of a workload file offer to resource claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stowage.analysis.simulation.workload_spec import NodeDevices
from stowage.api.decoding.decode import convert_object
from stowage.api.objects.device import ResourceSlice
from stowage.api.objects.node import Node

_INT, _BOOL, _STRING = "int", "bool", "string"


def slices_of(node: Node, groups: Sequence[NodeDevices]) -> list[ResourceSlice]:
    """The slices that the drivers of a node publish: one a group of devices, each its own pool.

    Raises:
        InvalidObject: An attribute or a capacity is invalid.
    """
    return [_slice(node.metadata.name, index, group) for index, group in enumerate(groups)]


def _slice(node_name: str, index: int, group: NodeDevices) -> ResourceSlice:
    name = f"{node_name}-{group.driver}-{index}"
    attributes = {key: _attribute(value) for key, value in group.attributes.items()}
    capacity = {
        key: value if isinstance(value, Mapping) else {"value": value}
        for key, value in group.capacity.items()
    }
    devices = [
        {"name": f"{group.name}-{number}", "attributes": attributes, "capacity": capacity}
        for number in range(group.count)
    ]
    pool = {"name": f"{node_name}-{index}", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": group.driver, "pool": pool, "nodeName": node_name, "devices": devices}
    metadata = {"name": name, "uid": f"{ResourceSlice.__name__}/{name}"}
    return convert_object(ResourceSlice, {"metadata": metadata, "spec": spec})


def _attribute(value: Any) -> Any:
    """An attribute as Kubernetes writes it."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, bool):
        return {_BOOL: value}
    return {_INT: value} if isinstance(value, int) else {_STRING: value}
