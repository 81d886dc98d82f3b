"""Pods of a drained node that no other node takes are found before others are moved in vain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stowage.analysis.cluster_changes import cordon
from stowage.analysis.relocation import Relocations
from stowage.analysis.virtual_cluster import VirtualCluster
from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.pod import Pod, TopologySpreadConstraint
from tests.support.builders import ZONE, make_node, make_pod, owned_by
from tests.support.clusters import loaded_cluster

OWNER = owned_by("ReplicaSet", "web", "rs")
NONE_AVOIDED = np.zeros(64, dtype=np.bool_)
SPREAD = TopologySpreadConstraint(5, ZONE, "DoNotSchedule", LabelSelector({"app": "web"}))


def names(pods: Sequence[Pod]) -> list[str]:
    return [pod.metadata.name for pod in pods]


@pytest.mark.parametrize(
    "stuck",
    [
        {"cpu": "3"},
        {"cpu": "1", "node_selector": {ZONE: "b"}},
        {"cpu": "3", "topology_spread_constraints": (SPREAD,)},
    ],
    ids=["too large", "of another zone", "too large, and spread"],
)
def test_a_pod_that_no_other_node_takes_comes_first_once_a_move_has_failed(
    stuck: dict[str, Any],
) -> None:
    pods = [make_pod(f"p{number}", cpu="1", node="b", owner=OWNER) for number in range(2)]
    pods.append(make_pod("stuck", node="b", owner=OWNER, **stuck))
    nodes = (make_node("a", cpu="2", zone="a"), make_node("b", cpu="8", zone="b"))
    cluster = VirtualCluster(loaded_cluster(*nodes, *pods))
    relocations = Relocations(cluster)
    cordon(cluster, "b")
    assert names(relocations.hopeless_first("b", pods)) == ["p0", "p1", "stuck"]
    assert relocations.relocate(pods[2], NONE_AVOIDED).startswith(
        "default/stuck would stay pending"
    )
    assert names(relocations.hopeless_first("b", pods)) == ["stuck", "p0", "p1"]
    cluster.engine.validate()


def test_the_order_stays_if_every_pod_fits_somewhere() -> None:
    pods = [
        make_pod(f"p{number}", cpu=cpu, node="b", owner=OWNER)
        for number, cpu in ((0, "1"), (1, "2"))
    ]
    huge = make_pod("huge", cpu="4", node="c", owner=OWNER)
    nodes = (make_node("a", cpu="2"), make_node("b"), make_node("c"))
    cluster = VirtualCluster(loaded_cluster(*nodes, *pods, huge))
    relocations = Relocations(cluster)
    cordon(cluster, "c")
    assert relocations.relocate(huge, NONE_AVOIDED)
    cordon(cluster, "b")
    assert relocations.hopeless_first("b", pods) == pods
