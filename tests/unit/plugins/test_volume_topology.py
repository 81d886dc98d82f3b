"""Where a volume can be used follows the labels of the nodes."""

from __future__ import annotations

from stowage.plugins.volumes.topology import VolumeTopology
from tests.support.builders import make_node
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
