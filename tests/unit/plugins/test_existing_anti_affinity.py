"""Placed pods keep others away, however many of them there are."""

from __future__ import annotations

import numpy as np
import pytest

from stowage.api.objects.pod import Affinity, PodAffinity
from stowage.plugins.inter_pod_affinity import InterPodAffinity
from stowage.plugins.inter_pod_affinity.args import InterPodAffinityArgs
from stowage.plugins.inter_pod_affinity.row_local import Repellers
from stowage.state.what_if.snapshot import WhatIfSnapshot
from tests.support.builders import affinity_term, label_selector, make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.unit.plugins.single_plugin import refused


@pytest.mark.parametrize("num_nodes", [3, 40])
def test_a_pod_is_refused_in_every_zone_with_a_pod_that_keeps_it_away(num_nodes: int) -> None:
    cluster = MirroredCluster([make_node("free", labels={"zone": "z2"})])
    term = affinity_term("zone", label_selector({"app": "web"}))
    away = Affinity(pod_anti_affinity=PodAffinity((term,)))
    names = [f"n{number}" for number in range(num_nodes)]
    for name in names:
        cluster.update_node(make_node(name, labels={"zone": "z1"}))
        cluster.bind(make_pod(f"picky-{name}", affinity=away), name)
    plugin = InterPodAffinity(InterPodAffinityArgs())
    assert set(refused(plugin, cluster, make_pod("p", labels={"app": "web"}))) == set(names)
    assert refused(plugin, cluster, make_pod("q", labels={"app": "db"})) == {}


def test_the_count_of_a_cycle_holds_for_its_pod_class_until_the_cluster_changes() -> None:
    term = affinity_term("zone", label_selector({"app": "web"}))
    away = Affinity(pod_anti_affinity=PodAffinity((term,)))
    cluster = MirroredCluster([make_node(name, labels={"zone": name}) for name in ("n1", "n2")])
    cluster.bind(make_pod("picky", affinity=away), "n1")
    web, snapshot = cluster.info(make_pod("p", labels={"app": "web"})), cluster.snapshot()
    counted = Repellers.count(web, snapshot)
    codes = snapshot.label_column("zone").values
    assert np.flatnonzero(counted.totals["zone"]).tolist() == [codes.get("n1")]
    assert counted.hold_for(web, snapshot)
    assert not counted.hold_for(cluster.info(make_pod("q", labels={"app": "db"})), snapshot)
    imagined = WhatIfSnapshot(snapshot, [], [], row=0)
    assert not Repellers.count(web, imagined).hold_for(web, imagined)
    cluster.bind(make_pod("pickier", affinity=away), "n2")
    assert not counted.hold_for(web, snapshot)
    assert not counted.hold_for(web, cluster.snapshot())
