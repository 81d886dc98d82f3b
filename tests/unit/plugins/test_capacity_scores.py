"""VolumeBinding with StorageCapacityScoring: scores of single nodes, worked out by hand."""

from __future__ import annotations

import pytest

from stowage.api.objects.volume import StorageObject
from stowage.framework import CycleState
from stowage.plugins.volumes import ScoringVolumeBinding, ScoringVolumeBindingArgs
from tests.support.builders import ZONE, label_selector, make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes
from tests.support.volume_builders import (
    claim_volume,
    make_capacity,
    make_claim,
    make_class,
    make_driver,
    make_volume,
)

PLUGIN = ScoringVolumeBinding(ScoringVolumeBindingArgs())
PUBLISHED = (make_driver(), make_capacity("k", "8Gi", label_selector({ZONE: "z"})))
CASES: dict[str, tuple[tuple[StorageObject, ...], int]] = {
    # 2 of 8: 100 - 25
    "one new volume": ((make_claim("c", size="2Gi"), *PUBLISHED), 75),
    # 2 + 4 of the same 8: 100 - 75
    "two new volumes of one class": (
        (make_claim("c", size="2Gi"), make_claim("d", size="4Gi"), *PUBLISHED),
        25,
    ),
    # 5 + 6 of 8: full
    "more than there is": (
        (make_claim("c", size="5Gi"), make_claim("d", size="6Gi"), *PUBLISHED),
        0,
    ),
    # 1 + 1 of the volumes' 4 + 2: 100 - 33
    "existing volumes": (
        (
            make_claim("c", size="1Gi"),
            make_claim("d", size="1Gi"),
            make_volume("v", size="4Gi"),
            make_volume("w", size="2Gi"),
        ),
        67,
    ),
    # Only the existing volume counts, 1 of 4; the other claim is too large for it.
    "an existing and a new volume": (
        (
            make_claim("c", size="1Gi"),
            make_claim("d", size="6Gi"),
            make_volume("v", size="4Gi"),
            *PUBLISHED,
        ),
        75,
    ),
    # 100 - 25 and 100 - 50 of another class: 62.5, rounded up
    "two classes": (
        (
            make_claim("c", size="2Gi"),
            make_claim("d", "fast", size="4Gi"),
            make_class("fast"),
            make_capacity("f", "8Gi", label_selector({ZONE: "z"}), class_name="fast"),
            *PUBLISHED,
        ),
        63,
    ),
    "nothing is published": ((make_claim("c", size="2Gi"),), 0),
}


@pytest.mark.parametrize("case", CASES)
def test_the_emptier_the_storage_stays_the_better_is_the_node(case: str) -> None:
    objects, want = CASES[case]
    cluster = MirroredCluster([make_node("n", labels={ZONE: "z"})])
    cluster.update_storage(make_class(), *objects)
    names = [each.metadata.name for each in objects if each.metadata.name in ("c", "d")]
    pod = cluster.info(make_pod("p", volumes=tuple(map(claim_volume, names))))
    state, snapshot = CycleState(), cluster.snapshot()
    assert PLUGIN.pre_filter(state, pod, snapshot).status.is_success
    nodes = existing_nodes(snapshot)
    assert PLUGIN.filter(state, pod, nodes).accepts_all
    assert PLUGIN.pre_score(state, pod, nodes).is_success
    assert PLUGIN.score(state, pod, nodes).tolist() == [want]


def test_a_pod_whose_claims_are_bound_is_not_scored() -> None:
    cluster = MirroredCluster([make_node("n")])
    cluster.update_storage(make_claim("c", volume="v"), make_volume("v", given_to="c"))
    pod = cluster.info(make_pod("p", volumes=(claim_volume("c"),)))
    state, snapshot = CycleState(), cluster.snapshot()
    assert PLUGIN.pre_filter(state, pod, snapshot).status.is_success
    assert PLUGIN.pre_score(state, pod, existing_nodes(snapshot)).is_skip
