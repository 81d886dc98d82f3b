"""Plugins ImageLocality and ImageLocalityPriority: prefer nodes that have the pod's images.

ImageLocalityPriority is the priority of kube-scheduler 1.12.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowage.framework import CycleState, NoArgs, PluginTraits, Reads
from stowage.framework.scores import MAX_NODE_SCORE, MAX_POINTS, POINT
from stowage.framework.verdict import Int64Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView

_MEBIBYTE = 1024 * 1024
MIN_THRESHOLD_BYTES = 23 * _MEBIBYTE
MAX_CONTAINER_THRESHOLD_BYTES = 1000 * _MEBIBYTE


class ImageLocality:
    """Scores nodes by the sizes of the pod's images that they have."""

    name = "ImageLocality"
    # The score of one node depends on the number of nodes that have an image.
    traits = PluginTraits(score_reads=Reads.NODES, reads_only_node_demand=True)

    def __init__(self, args: NoArgs) -> None:
        del args

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]``: sums of image sizes, scaled to 0..100 between two thresholds.

        An image counts ``int(size * (nodes that have it / all nodes))``, so that a rare image does
        not attract all pods to one node. Images of init containers and image volumes count as well
        (``sumImageScores``), but image volumes do not raise the upper threshold
        (``calculatePriority`` of v1.36).
        """
        del state
        spec = pod.spec
        num_containers = len(spec.init_containers) + len(spec.containers)
        highest = MAX_CONTAINER_THRESHOLD_BYTES * num_containers
        return _between_thresholds(nodes, pod.pod_class.images, highest, MAX_NODE_SCORE)


class ImageLocalityPriority:
    """Scores nodes by the sizes of the images of the pod's containers that they have."""

    name = "ImageLocalityPriority"
    traits = PluginTraits(score_reads=Reads.NODES, reads_only_node_demand=True)

    def __init__(self, args: NoArgs) -> None:
        del args

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]``: 10 times the points of ``ImageLocalityPriorityMap`` of 1.12.

        Init containers and image volumes do not count, and the upper threshold is 1000 MiB
        however many containers there are. Whole points of 0..10; times 10, weighted sums order
        nodes as in 1.12.
        """
        del state
        images = [container.image for container in pod.spec.containers]
        points = _between_thresholds(nodes, images, MAX_CONTAINER_THRESHOLD_BYTES, MAX_POINTS)
        return points * POINT


def _between_thresholds(
    nodes: NodeView, images: Sequence[str], highest: int, best: int
) -> Int64Array:
    """``int64[nodes]``: sums of scaled image sizes; `best` for `highest` bytes and more."""
    snapshot = nodes.snapshot
    sums = np.zeros(len(nodes), dtype=np.int64)
    for name in images:
        image = snapshot.image(normalized_image_name(name))
        if image is None:
            continue
        spread = image.num_nodes / snapshot.num_nodes
        # Half the time of adding a product of the mask; a pod may have thousands of images.
        np.add(sums, int(image.size_bytes * spread), out=sums, where=nodes.take(image.on_node))
    # Not np.clip: without containers, `highest` is below the lower threshold.
    counted = np.where(sums < MIN_THRESHOLD_BYTES, MIN_THRESHOLD_BYTES, np.minimum(sums, highest))
    scores: Int64Array = best * (counted - MIN_THRESHOLD_BYTES) // (highest - MIN_THRESHOLD_BYTES)
    return scores


def normalized_image_name(name: str) -> str:
    """The name with its tag; the runtime lists untagged images under ``:latest``.

    Examples:
        >>> normalized_image_name("registry.example:5000/app")
        'registry.example:5000/app:latest'
        >>> normalized_image_name("app:v1")
        'app:v1'
    """
    return f"{name}:latest" if name.rfind(":") <= name.rfind("/") else name
