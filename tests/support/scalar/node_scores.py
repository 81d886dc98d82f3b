"""The simpler Score plugins for one node, in plain Python, with Go's integer arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.values.resources import node_allocatable, pod_usage
from stowage.plugins.node_resources.args import ResourceSpec, ScoringStrategy
from tests.support.scalar.cluster import PlainCluster
from tests.support.scalar.labels import term_matches, tolerates_taint

Triple = tuple[int, int, int]
"""Requested with the pod, requested without it, and allocatable."""


def taint_toleration(pod: Pod, node: Node, cluster: PlainCluster) -> int:
    """Number of PreferNoSchedule taints that are not tolerated."""
    return sum(
        taint.effect == "PreferNoSchedule"
        and not any(tolerates_taint(each, taint) for each in pod.spec.tolerations)
        for taint in node.spec.taints
    )


def node_affinity(pod: Pod, node: Node, cluster: PlainCluster) -> int:
    """Sum of the weights of the preferred terms that match."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity else None
    return sum(term.weight for term in terms or () if term_matches(term.preference, node))


def image_locality(pod: Pod, node: Node, cluster: PlainCluster) -> int:
    """Sizes of the pod's images on the node, scaled by the share of nodes that have them."""
    mebibyte = 1024 * 1024
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    mounted = [volume.image.reference for volume in pod.spec.volumes if volume.image is not None]
    total = 0
    for image in (*(container.image for container in containers), *mounted):
        name = image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
        if name not in _images(node):
            continue
        holders = [each for each in cluster.nodes.values() if name in _images(each)]
        spread = len(holders) / len(cluster.nodes)
        total += int(_images(holders[0])[name] * spread)
    lowest, highest = 23 * mebibyte, 1000 * mebibyte * len(containers)
    clipped = min(max(total, lowest), highest)
    return 100 * (clipped - lowest) // (highest - lowest)


def fit_score(strategy: ScoringStrategy) -> Callable[[Pod, Node, PlainCluster], int]:
    """NodeResourcesFit's score with a strategy."""

    def score(pod: Pod, node: Node, cluster: PlainCluster) -> int:
        triples = _triples(pod, node, cluster, strategy.scored_resources, defaults=True)
        return _STRATEGIES[strategy.type](triples, strategy)

    return score


def balanced_allocation(
    resources: Sequence[ResourceSpec],
) -> Callable[[Pod, Node, PlainCluster], int]:
    """NodeResourcesBalancedAllocation's score."""

    def score(pod: Pod, node: Node, cluster: PlainCluster) -> int:
        triples = _triples(pod, node, cluster, resources, defaults=False)
        counted = [triple for _, triple in triples if triple[2] > 0]
        with_pod = _balance([min(taken / have, 1.0) for taken, _, have in counted])
        without = _balance([min(taken / have, 1.0) for _, taken, have in counted])
        return 50 + int((50 + with_pod - without) / 2)

    return score


def default_normalize(scores: Sequence[int], *, reverse: bool) -> list[int]:
    """``helper.DefaultNormalizeScore``."""
    highest = max(scores, default=0)
    if highest == 0:
        return [100 if reverse else 0 for _ in scores]
    shares = [100 * score // highest for score in scores]
    return [100 - share for share in shares] if reverse else shares


def _images(node: Node) -> dict[str, int]:
    return {name: image.size_bytes for image in node.status.images for name in image.names}


def _triples(
    pod: Pod,
    node: Node,
    cluster: PlainCluster,
    resources: Sequence[ResourceSpec],
    *,
    defaults: bool,
) -> list[tuple[int, Triple]]:
    have = node_allocatable(node)
    if defaults:
        pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, resources=None))
    found = []
    for resource in resources:
        wanted = _amount(pod, resource.name, defaults=defaults)
        if wanted == 0 and resource.name not in ("cpu", "memory", "ephemeral-storage"):
            continue
        taken = sum(
            _amount(other, resource.name, defaults=defaults) for other in cluster.pods_on(node)
        )
        triple = (taken + wanted, taken, have.get(resource.name, 0))
        found.append((resource.effective_weight, triple))
    return found


def _amount(pod: Pod, resource: str, *, defaults: bool) -> int:
    usage = pod_usage(pod)
    if defaults and resource == "cpu":
        return usage.nonzero_cpu_milli
    if defaults and resource == "memory":
        return usage.nonzero_memory_bytes
    return usage.requests.get(resource, 0)


def _least(triples: list[tuple[int, Triple]], strategy: ScoringStrategy) -> int:
    total = weights = 0
    for weight, (taken, _, have) in triples:
        if have:
            total += weight * (0 if taken > have else (have - taken) * 100 // have)
            weights += weight
    return total // weights if weights else 0


def _most(triples: list[tuple[int, Triple]], strategy: ScoringStrategy) -> int:
    total = weights = 0
    for weight, (taken, _, have) in triples:
        if have:
            total += weight * (min(taken, have) * 100 // have)
            weights += weight
    return total // weights if weights else 0


def _ratio(triples: list[tuple[int, Triple]], strategy: ScoringStrategy) -> int:
    total = weights = 0
    for weight, (taken, _, have) in triples:
        if have:
            score = _broken_line(strategy, 100 if taken > have else taken * 100 // have)
            if score > 0:
                total += weight * score
                weights += weight
    return math.floor(total / weights + 0.5) if weights else 0


def _broken_line(strategy: ScoringStrategy, utilization: int) -> int:
    assert strategy.requested_to_capacity_ratio is not None
    shape = strategy.requested_to_capacity_ratio.shape
    for index, point in enumerate(shape):
        if utilization <= point.utilization:
            if index == 0:
                return point.score * 10
            last = shape[index - 1]
            rise = (point.score - last.score) * 10 * (utilization - last.utilization)
            return last.score * 10 + int(rise / (point.utilization - last.utilization))
    return shape[-1].score * 10


def _balance(fractions: list[float]) -> int:
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = sum(fractions) / len(fractions)
        squares = 0.0
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = math.sqrt(squares / len(fractions))
    return int((1 - deviation) * 100)


_STRATEGIES = {
    "LeastAllocated": _least,
    "MostAllocated": _most,
    "RequestedToCapacityRatio": _ratio,
}
