"""What shapes have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from simcluster.kubelet.nodes import bench_node
from stowage.api.decoding.decode import convert_object
from stowage.api.events import AssignedPodSeen, NodeSeen, PendingPodSeen
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage_benchmarks.core.run import SCHEDULER_NAME, bench_pod
from stowage_benchmarks.steps.shell import MeasuredShell
from stowage_benchmarks.workloads import Json, pending_pod


class Size(msgspec.Struct, frozen=True):
    """The size of a shape.

    Attributes:
        nodes: Number of nodes.
        share: What part of the full number of everything else there is.
    """

    nodes: int
    share: float

    def of(self, number: int) -> int:
        """The part of this number; at least one."""
        return max(1, round(number * self.share))


Shape: TypeAlias = Callable[[MeasuredShell, Size], None]
Shapes: TypeAlias = Mapping[str, Shape]


def pod(name: str, labels: Mapping[str, str] | None = None, **spec: object) -> Json:
    """A pending pod; `spec` replaces fields."""
    manifest = pending_pod("basic", 0, SCHEDULER_NAME)
    metadata = manifest["metadata"] | {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    if labels is not None:
        metadata["labels"] = dict(labels)
    return {**manifest, "metadata": metadata, "spec": {**manifest["spec"], **spec}}


def requesting(**requests: str) -> list[Json]:
    """Containers that request this."""
    return [{"name": "main", "image": "main:1", "resources": {"requests": requests}}]


def node(index: int, labels: Mapping[str, str] | None = None, **status: object) -> Json:
    """A node of the benchmarks with more labels; `status` replaces fields."""
    manifest = bench_node(index)
    manifest["metadata"]["labels"] |= labels or {}
    manifest["status"] |= status
    return manifest


def nodes_seen(nodes: Iterable[Json]) -> Iterable[NodeSeen]:
    """The events of these nodes."""
    return (NodeSeen(convert_object(Node, each)) for each in nodes)


def pending(manifest: Json) -> PendingPodSeen:
    """The event of a pending pod."""
    return PendingPodSeen(convert_object(Pod, manifest))


def running(manifest: Json, node_index: int) -> AssignedPodSeen:
    """The event of a pod that runs on a node."""
    spec = {**manifest["spec"], "nodeName": f"node-{node_index:05d}"}
    return AssignedPodSeen(bench_pod({**manifest, "spec": spec}))


def basic_cluster(shell: MeasuredShell, size: Size) -> None:
    """Nodes with one running pod each."""
    shell.tell(nodes_seen(node(index) for index in range(size.nodes)))
    shell.tell(running(pod(f"init-{index}"), index) for index in range(size.nodes))
