from __future__ import annotations

import msgspec
import pytest

from stowage.api.objects.node import ContainerImage
from stowage.api.objects.pod import PodSpec
from stowage.api.objects.volume import ImageVolumeSource, Volume
from stowage.framework import CycleState, NoArgs
from stowage.plugins.image_locality import ImageLocality, normalized_image_name
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes

MEBIBYTE = 1024 * 1024


def _cluster() -> MirroredCluster:
    large = ContainerImage(("registry.example/large:1",), 2046 * MEBIBYTE)
    small = ContainerImage(("registry.example/small:latest",), 46 * MEBIBYTE)
    return MirroredCluster([make_node("n0", images=[large]), make_node("n1", images=[small])])


def _scores(*images: str, volumes: tuple[Volume, ...] = ()) -> list[int]:
    cluster = _cluster()
    pod = cluster.info(make_pod("p", images=images, volumes=volumes))
    nodes = existing_nodes(cluster.snapshot())
    scores: list[int] = ImageLocality(NoArgs()).score(CycleState(), pod, nodes).tolist()
    return scores


def test_an_image_counts_by_its_size_and_the_share_of_nodes_that_have_it() -> None:
    """(2046 / 2 - 23) * 100 / (1000 - 23) is above 100, so it is cut to 100."""
    assert _scores("registry.example/large:1") == [100, 0]
    assert _scores("registry.example/large:1", "other") == [100 * (1023 - 23) // (2000 - 23), 0]


def test_an_image_below_the_threshold_does_not_count() -> None:
    assert _scores("registry.example/small") == [0, 0]


def test_a_pod_without_containers_gets_no_score() -> None:
    cluster = _cluster()
    pod = cluster.info(msgspec.structs.replace(make_pod("p"), spec=PodSpec()))
    nodes = existing_nodes(cluster.snapshot())
    assert ImageLocality(NoArgs()).score(CycleState(), pod, nodes).tolist() == [0, 0]


def test_an_image_volume_counts_but_does_not_raise_the_upper_threshold() -> None:
    """``sumImageScores`` counts volumes; ``calculatePriority`` gets only the containers."""
    volume = Volume(name="v", image=ImageVolumeSource("registry.example/large:1"))
    assert _scores("other", volumes=(volume,)) == [100, 0]
    assert _scores("other", "third", volumes=(volume,)) == [100 * (1023 - 23) // (2000 - 23), 0]


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("root", "root:latest"),
        ("root:tag", "root:tag"),
        ("gcr.io:5000/root", "gcr.io:5000/root:latest"),
        ("root@sha256:abc", "root@sha256:abc"),
    ],
)
def test_an_image_without_a_tag_has_the_tag_latest(name: str, want: str) -> None:
    assert normalized_image_name(name) == want
