"""Where a volume can be used follows the labels of the nodes."""

from __future__ import annotations

from random import Random

import numpy as np
from msgspec.structs import replace

from stowage.api.objects.volume import VolumeNodeAffinity
from stowage.plugins.volumes.topology import VolumeTopology
from tests.support.builders import HOSTNAME, make_node
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.volume_builders import affinity_to


def _names(topology: VolumeTopology, cluster: MirroredCluster) -> list[str]:
    nodes = cluster.snapshot().all_nodes
    positions = topology.positions(nodes, affinity_to("zone", ["z1"]))
    return [nodes.names[position] for position in positions.tolist()]


def test_a_node_that_changes_its_zone_is_judged_again() -> None:
    cluster = MirroredCluster([make_node("a", labels={"zone": "z1"}), make_node("b")])
    topology = VolumeTopology()
    assert _names(topology, cluster) == ["a"]
    cluster.update_node(make_node("a", labels={"zone": "z2"}))
    cluster.update_node(make_node("b", labels={"zone": "z1"}))
    assert _names(topology, cluster) == ["b"]


def test_another_cluster_has_answers_of_its_own() -> None:
    topology = VolumeTopology()
    first = MirroredCluster([make_node("a", labels={"zone": "z1"}), make_node("b")])
    second = MirroredCluster([make_node("a"), make_node("b", labels={"zone": "z1"})])
    assert [_names(topology, each) for each in (first, second, first)] == [["a"], ["b"], ["a"]]


def test_the_positions_of_many_affinities_are_those_of_each() -> None:
    """Of many affinities, those that name values of a label are looked up by the value."""
    random = Random(7)
    zones = [*(f"z{index}" for index in range(4)), None]
    nodes = [
        make_node(f"n{index}", labels={} if zone is None else {"zone": zone})
        for index, zone in enumerate(random.choices(zones, k=30))
    ]
    snapshot = MirroredCluster(nodes).snapshot()
    affinities: list[VolumeNodeAffinity | None] = [
        None,
        affinity_to("unheard-of", ["z1"]),
        _unlike(affinity_to("zone", ["z1"])),
        *(affinity_to(HOSTNAME, [f"n{index}"]) for index in range(31)),
        *(affinity_to("zone", random.sample(["z0", "z1", "z2", "z9"], 2)) for _ in range(9)),
    ]
    for view in (snapshot.all_nodes, snapshot.view(np.array([3, 5, 20]))):
        found = VolumeTopology().all_positions(view, affinities)
        alone = [VolumeTopology().positions(view, each) for each in affinities]
        assert [each.tolist() for each in found] == [each.tolist() for each in alone]


def _unlike(affinity: VolumeNodeAffinity) -> VolumeNodeAffinity:
    """The affinity to all other values."""
    assert affinity.required is not None
    (term,) = affinity.required.node_selector_terms
    (expression,) = term.match_expressions
    other = replace(term, match_expressions=(replace(expression, operator="NotIn"),))
    return replace(affinity, required=replace(affinity.required, node_selector_terms=(other,)))
