"""Priorities of kube-scheduler 1.12 for one node, in plain Python: whole points of 0..10.

The plugins score ten times these points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from stowage.api.config.types import UtilizationShapePoint
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.values.resources import node_allocatable, pod_usage
from tests.support.scalar.cluster import PlainCluster
from tests.support.scalar.labels import selects
from tests.support.scalar.legacy_filters import amount, services_of

Points = Callable[[Pod, Node, PlainCluster], int]
Pair = tuple[int, int]
"""Requested with the pod, and allocatable."""


def least_requested(pod: Pod, node: Node, cluster: PlainCluster) -> int:
    """The mean of what stays free, in tenths."""
    parts = [
        0 if not have or taken > have else (have - taken) * 10 // have
        for taken, have in _cpu_and_memory(pod, node, cluster)
    ]
    return sum(parts) // 2


def most_requested(pod: Pod, node: Node, cluster: PlainCluster) -> int:
    """The mean of what is taken, in tenths."""
    parts = [
        0 if not have or taken > have else taken * 10 // have
        for taken, have in _cpu_and_memory(pod, node, cluster)
    ]
    return sum(parts) // 2


def balanced_resource_allocation(pod: Pod, node: Node, cluster: PlainCluster) -> int:
    """The more alike the fractions of cpu and memory, the more points; none for a full node."""
    cpu, memory = (
        taken / have if have else 1.0 for taken, have in _cpu_and_memory(pod, node, cluster)
    )
    if cpu >= 1 or memory >= 1:
        return 0
    return int((1 - abs(cpu - memory)) * 10.0)


def requested_to_capacity_ratio(shape: Sequence[UtilizationShapePoint]) -> Points:
    """The mean of a broken line over the utilizations, which are rounded up."""

    def points(pod: Pod, node: Node, cluster: PlainCluster) -> int:
        parts = []
        for taken, have in _cpu_and_memory(pod, node, cluster):
            full = not have or taken > have
            parts.append(broken_line(shape, 100 if full else 100 - (have - taken) * 100 // have))
        return sum(parts) // 2

    return points


def broken_line(shape: Sequence[UtilizationShapePoint], utilization: int) -> int:
    """Linear between the points; a division rounds towards zero."""
    last = None
    for point in shape:
        if utilization <= point.utilization:
            if last is None:
                return point.score
            rise = (point.score - last.score) * (utilization - last.utilization)
            return last.score + int(rise / (point.utilization - last.utilization))
        last = point
    return shape[-1].score


def image_locality(pod: Pod, node: Node, cluster: PlainCluster) -> int:
    """Sizes of the containers' images on the node, each scaled by the share of nodes with it."""
    mebibyte = 1024 * 1024
    total = 0
    for container in pod.spec.containers:
        tagged = container.image.rfind(":") > container.image.rfind("/")
        name = container.image if tagged else f"{container.image}:latest"
        if name in _images(node):
            holders = [each for each in cluster.nodes.values() if name in _images(each)]
            total += int(_images(holders[0])[name] * (len(holders) / len(cluster.nodes)))
    clipped = min(max(total, 23 * mebibyte), 1000 * mebibyte)
    return 10 * (clipped - 23 * mebibyte) // (977 * mebibyte)


def resource_limits(pod: Pod, node: Node, cluster: PlainCluster) -> int:
    """One point if cpu or memory of the node is enough for the limits of the pod's containers."""
    have = node_allocatable(node)
    for name, milli in (("cpu", 1000), ("memory", 1)):
        named = [each.resources.limits.get(name, "0") for each in pod.spec.containers]
        limit = sum(amount(text) * milli for text in named)
        if 0 < limit <= have.get(name, 0):
            return 1
    return 0


def node_label(labels: Mapping[str, str], present: Sequence[str], absent: Sequence[str]) -> int:
    """The share of the preferences that a node meets, 0..100."""
    met = sum(key in labels for key in present) + sum(key not in labels for key in absent)
    number = len(present) + len(absent)
    return 100 * met // number if number else 0


def service_pods(cluster: PlainCluster, pod: Pod, node: Node) -> int:
    """The pods on a node that the first service of the pod selects."""
    services = services_of(cluster, pod)
    return sum(
        other.metadata.namespace == pod.metadata.namespace
        and other.metadata.deletion_timestamp is None
        and bool(services)
        and selects(services[0], other.metadata.labels)
        for other in cluster.pods_on(node)
    )


def spreading_points(nodes: Sequence[Node], counts: Sequence[int], key: str) -> list[int]:
    """The fewer of all counted pods are on nodes with the same label, the more points."""
    points = []
    for node in nodes:
        value = node.metadata.labels.get(key)
        alike = [
            count
            for other, count in zip(nodes, counts, strict=True)
            if other.metadata.labels.get(key) == value
        ]
        total = sum(counts)
        share = (total - sum(alike)) / total if total else 1.0
        points.append(0 if value is None else int(10.0 * share))
    return points


def normalized_points(scores: Sequence[int], *, reverse: bool) -> list[int]:
    """``NormalizeReduce``: tenths of the highest score."""
    highest = max(scores, default=0)
    points = [10 * score // highest if highest else 0 for score in scores]
    return [10 - each for each in points] if reverse else points


def affinity_points(sums: Sequence[int]) -> list[int]:
    """InterPodAffinityPriority: sums of weights scaled between the extremes, 0 among them."""
    lowest, highest = min(0, *sums, 0), max(0, *sums, 0)
    if lowest == highest:
        return [0 for _ in sums]
    return [int(10.0 * ((value - lowest) / (highest - lowest))) for value in sums]


def _images(node: Node) -> dict[str, int]:
    return {name: image.size_bytes for image in node.status.images for name in image.names}


def _cpu_and_memory(pod: Pod, node: Node, cluster: PlainCluster) -> tuple[Pair, Pair]:
    usages = [pod_usage(each) for each in (pod, *cluster.pods_on(node))]
    have = node_allocatable(node)
    return (
        (sum(each.nonzero_cpu_milli for each in usages), have.get("cpu", 0)),
        (sum(each.nonzero_memory_bytes for each in usages), have.get("memory", 0)),
    )


RESOURCE_PRIORITIES: dict[str, Points] = {
    "LeastRequestedPriority": least_requested,
    "MostRequestedPriority": most_requested,
    "BalancedResourceAllocation": balanced_resource_allocation,
    "ImageLocalityPriority": image_locality,
    "ResourceLimitsPriority": resource_limits,
}
