"""SelectorSpread of kube-scheduler 1.12, one node and one pod at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from tests.support.scalar.cluster import PlainCluster
from tests.support.scalar.labels import is_empty, selects

KINDS = ("Service", "ReplicationController", "ReplicaSet", "StatefulSet")
DOMAIN = "topology.kubernetes.io/"
OLD_DOMAIN = "failure-domain.beta.kubernetes.io/"
ZONE_WEIGHTING = 2.0 / 3.0


def selectors_of(cluster: PlainCluster, pod: Pod) -> list[LabelSelector]:
    """The selectors of all services and controllers that select the pod."""
    if not pod.metadata.labels:
        return []
    return [
        selector
        for (kind, namespace, _), selector in cluster.workloads.items()
        if kind in KINDS
        and namespace == pod.metadata.namespace
        and selector is not None
        and not is_empty(selector)
        and selects(selector, pod.metadata.labels)
    ]


def count(cluster: PlainCluster, pod: Pod, node: Node) -> int:
    """The number of pods on a node that one of the selectors matches."""
    selectors = selectors_of(cluster, pod)
    return sum(
        other.metadata.namespace == pod.metadata.namespace
        and other.metadata.deletion_timestamp is None
        and any(selects(selector, other.metadata.labels) for selector in selectors)
        for other in cluster.pods_on(node)
    )


def zone_key(node: Node) -> tuple[str, str] | None:
    """Region and zone; None if the node has neither."""
    labels = node.metadata.labels
    region, zone = (
        labels.get(DOMAIN + part, labels.get(OLD_DOMAIN + part, "")) for part in ("region", "zone")
    )
    return (region, zone) if region or zone else None


def scores(nodes: Sequence[Node], counts: Sequence[int]) -> list[int]:
    """1.12's whole points out of 10, times 10."""
    by_zone: Counter[tuple[str, str]] = Counter()
    for node, on_node in zip(nodes, counts, strict=True):
        zone = zone_key(node)
        if zone is not None:
            by_zone[zone] += on_node
    result = []
    for node, on_node in zip(nodes, counts, strict=True):
        points = _points(on_node, max(counts))
        zone = zone_key(node)
        if zone is not None:
            zone_points = _points(by_zone[zone], max(by_zone.values()))
            points = points * (1.0 - ZONE_WEIGHTING) + ZONE_WEIGHTING * zone_points
        result.append(int(points) * 10)
    return result


def _points(pods: int, most: int) -> float:
    return 10.0 * ((most - pods) / most) if most > 0 else 10.0
