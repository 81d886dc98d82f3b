"""Host ports conflict by protocol, number and IP; 0.0.0.0 conflicts with every IP."""

from __future__ import annotations

import pytest

from stowage.state.nodes.host_ports import HostPorts, ports_conflict
from stowage.state.pods.pod_class import HostPort

ALL = slice(None)
ANY: HostPort = ("0.0.0.0", "TCP", 80)
LOCAL: HostPort = ("127.0.0.1", "TCP", 80)


@pytest.mark.parametrize(
    ("used", "wanted", "collide"),
    [
        (ANY, ANY, True),
        (ANY, LOCAL, True),
        (LOCAL, ANY, True),
        (LOCAL, LOCAL, True),
        (LOCAL, ("10.0.0.1", "TCP", 80), False),
        (ANY, ("0.0.0.0", "UDP", 80), False),
        (ANY, ("0.0.0.0", "TCP", 81), False),
    ],
)
def test_ports_collide_by_protocol_number_and_ip(
    used: HostPort, wanted: HostPort, collide: bool
) -> None:
    ports = HostPorts(3)
    ports.add(1, [used])
    assert ports.in_conflict([wanted], ALL).tolist() == [False, collide, False]
    assert ports_conflict(used, wanted) is collide


def test_a_port_is_in_use_until_its_last_pod_is_removed() -> None:
    ports = HostPorts(2)
    ports.add(0, [ANY])
    ports.add(0, [ANY])
    ports.remove(0, [ANY])
    assert ports.in_conflict([ANY], ALL).tolist() == [True, False]
    ports.remove(0, [ANY])
    assert not ports.in_conflict([ANY], ALL).any()
    assert ports.on_row(0) == {}


def test_a_copy_changes_independently() -> None:
    ports = HostPorts(1)
    ports.add(0, [ANY])
    copy = ports.copy()
    copy.remove(0, [ANY])
    assert ports.in_conflict([ANY], ALL).all()
    assert not copy.in_conflict([ANY], ALL).any()
