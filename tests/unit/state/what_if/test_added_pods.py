"""Pods added to nodes of a view are summed per node, in the order of the view."""

from __future__ import annotations

from typing import Any

import numpy as np

from stowage.state.nodes.resource_index import ResourceIndex
from stowage.state.pods.pod_class import PodClass
from stowage.state.pods.pod_info import PodInfo, make_pod_info
from stowage.state.pods.pod_variants import PodVariants
from stowage.state.what_if.added_pods import NO_ADDED_PODS, AddedPods
from tests.support.builders import make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.volume_builders import claim_volume

CLASSES = MirroredCluster().cache.classes


def _info(name: str, priority: int, **more: Any) -> PodInfo:
    return make_pod_info(make_pod(name, priority=priority, **more), CLASSES)


def _priority(pod_class: PodClass, _terminating: bool) -> int:
    return pod_class.priority


PODS = (_info("a", 10), _info("b", 20), _info("c", 20, volumes=(claim_volume("c"),)))
VARIANTS = PodVariants(ResourceIndex())
ADDED = AddedPods(
    np.array([4, 7, 4]),
    np.array([VARIANTS.acquire(pod) for pod in PODS]),
    VARIANTS,
    PODS,
    np.arange(len(PODS)),
)


def _names(pods: list[PodInfo]) -> list[str]:
    return [pod.name for pod in pods]


def test_a_number_is_summed_per_node() -> None:
    assert ADDED.sum(_priority, 9).tolist() == [0, 0, 0, 0, 30, 0, 0, 20, 0]
    assert NO_ADDED_PODS.sum(_priority, 2).tolist() == [0, 0]


def test_a_view_of_some_nodes_has_their_pods_at_their_new_positions() -> None:
    seen = ADDED.at(np.array([7, 2, 4]), 9)
    assert seen.sum(_priority, 3).tolist() == [20, 0, 30]
    assert [_names(seen.on(place)) for place in range(3)] == [["b"], [], ["a", "c"]]
    assert seen.present(3).tolist() == [True, False, True]
    without = seen.at(np.array([0, 1]), 3)
    assert len(without) == 1
    assert _names(without.on(0)) == ["b"]


def test_pods_with_volumes_are_returned_with_their_positions() -> None:
    assert [(place, pod.name) for place, pod in ADDED.with_volumes()] == [(4, "c")]
    assert list(ADDED.at(np.array([7]), 9).with_volumes()) == []


def test_values_are_summed_over_the_pods_of_a_node() -> None:
    cpu, memory = "500m", "1Gi"
    large = _info("d", 5, cpu=cpu, memory=memory)
    variants = PodVariants(ResourceIndex())
    code = variants.acquire(large)
    pods = AddedPods(
        np.array([2, 0, 2]), np.array([code] * 3), variants, (large,) * 3, np.arange(3)
    )
    used = np.ones((4, variants.requests().shape[1]), dtype=np.int64)
    pods.add_requests(used)
    assert used[:, 0].tolist() == [501, 1, 1001, 1]
    assert used[:, 1].tolist() == [2**30 + 1, 1, 2**31 + 1, 1]
    assert used[:, -1].tolist() == [2, 1, 3, 1]
