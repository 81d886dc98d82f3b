"""EqualPriority gives all nodes the same score."""

from __future__ import annotations

import numpy as np

from stowage.framework import CycleState, NoArgs
from stowage.plugins.equal_priority import EqualPriority
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes


def test_every_node_gets_one_point_of_ten() -> None:
    crowded = make_pod("other", cpu="3", node="a")
    cluster = MirroredCluster([make_node("a"), make_node("b", cpu="64")], [crowded])
    nodes = existing_nodes(cluster.snapshot())
    scores = EqualPriority(NoArgs()).score(CycleState(), cluster.info(make_pod("p")), nodes)
    assert scores.tolist() == [10, 10]
    assert scores.dtype == np.dtype(np.int64)
