"""A reserved port stays free until a process listens on it."""

from __future__ import annotations

import socket
import sys

import pytest

from simcluster.ports import reserved_port

only_linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a port is not kept")


def test_a_process_can_listen_on_a_reserved_port() -> None:
    with (
        reserved_port() as port,
        socket.create_server(("127.0.0.1", port)) as server,
        socket.create_connection(("127.0.0.1", port)) as client,
        server.accept()[0] as accepted,
    ):
        client.sendall(b"x")
        assert accepted.recv(1) == b"x"


@only_linux
def test_a_reserved_port_has_no_listener_and_is_not_assigned_to_others() -> None:
    with reserved_port() as port, socket.socket() as client, socket.socket() as other:
        with pytest.raises(ConnectionRefusedError):
            client.connect(("127.0.0.1", port))
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))


@only_linux
def test_a_port_in_use_cannot_be_reserved() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(OSError, match="in use"),
        reserved_port(port=taken.getsockname()[1]),
    ):
        pytest.fail("it is taken")
