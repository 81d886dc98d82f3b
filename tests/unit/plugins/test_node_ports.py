from __future__ import annotations

import pytest

from stowage.api.objects.pod import ContainerPort
from stowage.api.status import Code
from stowage.framework import NoArgs
from stowage.plugins.node_ports import NodePorts
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.unit.plugins.single_plugin import pre_filter, refused

PLUGIN = NodePorts(NoArgs())


def _port(number: int, protocol: str = "TCP", ip: str = "") -> ContainerPort:
    return ContainerPort(host_port=number, protocol=protocol, host_ip=ip)


def test_a_pod_without_host_ports_is_skipped() -> None:
    cluster = MirroredCluster([make_node("n0")])
    assert pre_filter(PLUGIN, cluster, make_pod("p")).status.is_skip


@pytest.mark.parametrize(
    ("wanted", "collides"),
    [
        (_port(80), True),
        (_port(80, ip="10.0.0.1"), True),
        (_port(80, ip="10.0.0.2"), False),
        (_port(80, "UDP"), False),
        (_port(81), False),
    ],
)
def test_ports_collide_on_the_same_or_on_all_addresses(
    wanted: ContainerPort, collides: bool
) -> None:
    cluster = MirroredCluster([make_node("n0"), make_node("n1")])
    cluster.bind(make_pod("a", host_ports=[_port(80, ip="10.0.0.1")]), "n0")
    found = refused(PLUGIN, cluster, make_pod("p", host_ports=[wanted]))
    assert list(found) == (["n0"] if collides else [])
    for status in found.values():
        assert status.code is Code.UNSCHEDULABLE
        assert status.reasons == ("node(s) didn't have free ports for the requested pod ports",)
