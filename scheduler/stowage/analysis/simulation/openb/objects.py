"""The Kubernetes objects of a trace.

A node offers a thousand of an extended resource for each GPU, and has its model and its rank as
labels. A pod requests thousandths, and accepts models by its node affinity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stowage.analysis.simulation.openb.trace import GPU, OpenbNode, OpenbPod
from stowage.api.objects.meta import ObjectMeta
from stowage.api.objects.node import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeStatus,
)
from stowage.api.objects.pod import (
    Affinity,
    Container,
    NodeAffinity,
    Pod,
    PodSpec,
    ResourceRequirements,
)

RESOURCE = "gpushare.example.com/gpu-milli"
MODEL_LABEL = "gpushare.example.com/model"
RANK_LABEL = "gpushare.example.com/rank"
ANNOTATION = "reserved.stowage/gpus"
"""The GPUs of a pod: their numbers on the node, separated by commas."""

MAX_PODS = 1001
_NAMESPACE = "default"


def node_object(node: OpenbNode, rank: int) -> Node:
    """The object of a node.

    Args:
        node: The node.
        rank: Its place in the order that breaks ties.
    """
    labels = {"kubernetes.io/hostname": node.name, RANK_LABEL: str(rank)}
    if node.model:
        labels[MODEL_LABEL] = node.model
    amounts: dict[str, str | int | float] = {
        "cpu": f"{node.cpu_milli}m",
        "memory": f"{node.memory_mib}Mi",
        "pods": MAX_PODS,
    }
    if node.gpus:
        amounts[RESOURCE] = node.gpus * GPU
    return Node(
        ObjectMeta(name=node.name, uid=node.name, labels=labels),
        status=NodeStatus(allocatable=amounts, capacity=amounts),
    )


def pod_objects(pods: Iterable[OpenbPod], scheduler_name: str) -> Iterator[Pod]:
    """The objects of pods, one by one."""
    specs: dict[tuple[object, ...], PodSpec] = {}
    for pod in pods:
        kind = (pod.cpu_milli, pod.memory_mib, pod.total_milli, pod.spec)
        spec = specs.get(kind)
        if spec is None:
            spec = specs[kind] = _pod_spec(pod, scheduler_name)
        yield Pod(ObjectMeta(name=pod.name, namespace=_NAMESPACE, uid=pod.name), spec)


def gpus_of(annotations: Mapping[str, str]) -> list[int]:
    """The GPUs that an annotation names; none without it.

    Raises:
        ValueError: The annotation is no list of numbers.
    """
    text = annotations.get(ANNOTATION, "")
    return [int(part) for part in text.split(",")] if text else []


def _pod_spec(pod: OpenbPod, scheduler_name: str) -> PodSpec:
    requests: dict[str, str | int | float] = {
        "cpu": f"{pod.cpu_milli}m",
        "memory": f"{pod.memory_mib}Mi",
    }
    if pod.total_milli:
        requests[RESOURCE] = pod.total_milli
    container = Container("main", "", ResourceRequirements(requests=requests))
    affinity = None
    if pod.models:
        accepted = NodeSelectorRequirement(MODEL_LABEL, "In", pod.models)
        terms = NodeSelector((NodeSelectorTerm((accepted,)),))
        required = NodeAffinity(required_during_scheduling_ignored_during_execution=terms)
        affinity = Affinity(node_affinity=required)
    return PodSpec((container,), scheduler_name=scheduler_name, affinity=affinity)
