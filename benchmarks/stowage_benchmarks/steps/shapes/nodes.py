"""Nodes with thousands of resources, labels, taints and images, and many nodes at once."""

from __future__ import annotations

from stowage.api.decoding.decode import convert_object
from stowage.api.events import NamespaceSeen
from stowage.api.objects.namespace import Namespace
from stowage.api.reflected_kinds import NODES
from stowage_benchmarks.steps.shapes.shape import (
    Shapes,
    Size,
    basic_cluster,
    node,
    nodes_seen,
    pod,
    requesting,
    running,
)
from stowage_benchmarks.steps.shell import MeasuredShell
from stowage_benchmarks.workloads import NAMESPACE, Json

_RESOURCES = 5_000
_REQUESTED = 1_000
_LABELS = 5_000
_TAINTS = 2_000
_IMAGES = 2_000
_NODES_WITH_IMAGES = 500
_PODS_OF_NAMESPACE = 50_000


def _resources(shell: MeasuredShell, size: Size) -> None:
    basic_cluster(shell, size)
    shell.list_objects(NODES, [_node_with_resources(size)])
    names = list(_node_with_resources(size)["status"]["capacity"])[: size.of(_REQUESTED)]
    shell.list_pods([pod("p", containers=requesting(**dict.fromkeys(names, "1")))])
    shell.schedule()


def _node_with_resources(size: Size) -> Json:
    amounts = {f"example.com/r{number}": "4" for number in range(size.of(_RESOURCES))}
    amounts |= {"pods": "110", "cpu": "4"}
    return node(0, capacity=amounts, allocatable=amounts)


def _labels(shell: MeasuredShell, size: Size) -> None:
    basic_cluster(shell, size)
    manifest = node(0, {f"label-{number}": "value" for number in range(size.of(_LABELS))})
    manifest["spec"] = {
        "taints": [
            {"key": f"taint-{number}", "value": "v", "effect": "PreferNoSchedule"}
            for number in range(size.of(_TAINTS))
        ]
    }
    shell.list_objects(NODES, [manifest])
    tolerations = [
        {"key": f"taint-{number}", "operator": "Exists"} for number in range(size.of(_TAINTS))
    ]
    shell.list_pods([pod("tolerant", tolerations=tolerations), pod("other")])
    shell.schedule()


def _images(shell: MeasuredShell, size: Size) -> None:
    shell.tell(nodes_seen(node(index) for index in range(size.nodes)))
    images = [{"names": [name], "sizeBytes": 10**8} for name in _image_names(size)]
    with_images = min(_NODES_WITH_IMAGES, size.nodes)
    shell.list_objects(NODES, (node(index, images=images) for index in range(with_images)))
    containers = [
        {"name": f"c{number}", "image": name} for number, name in enumerate(_image_names(size))
    ]
    shell.list_pods([pod("p", containers=containers)])
    shell.schedule()


def _image_names(size: Size) -> list[str]:
    return [f"registry.example.com/image-{number}:1" for number in range(size.of(_IMAGES))]


def _updated(shell: MeasuredShell, size: Size) -> None:
    basic_cluster(shell, size)
    shell.list_objects(NODES, (node(index, {"disk": "new"}) for index in range(size.nodes)))
    shell.list_pods([pod("p")])
    shell.schedule()


def _namespace(shell: MeasuredShell, size: Size) -> None:
    basic_cluster(shell, size)
    shell.tell(
        running(pod(f"pod-{index}", {"app": f"a{index}"}), index % size.nodes)
        for index in range(size.of(_PODS_OF_NAMESPACE))
    )
    for turn in ("1", "2"):
        shell.receive([_namespace_seen({"turn": turn})])
        shell.list_pods([pod(f"p{turn}", affinity=_affinity_to_namespaces(turn))])
        shell.schedule()


def _namespace_seen(labels: dict[str, str]) -> NamespaceSeen:
    manifest = {"metadata": {"name": NAMESPACE, "labels": labels}}
    return NamespaceSeen(convert_object(Namespace, manifest))


def _affinity_to_namespaces(turn: str) -> Json:
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "namespaceSelector": {"matchLabels": {"turn": turn}},
        "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
    }
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


NODE_SHAPES: Shapes = {
    "a node with 5,000 resources, a pod requests 1,000": _resources,
    "a node with 5,000 labels and 2,000 taints": _labels,
    "500 nodes with 2,000 images each": _images,
    "all nodes updated in a list": _updated,
    "labels of a namespace with 50,000 pods": _namespace,
}
