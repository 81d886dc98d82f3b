"""Which connections a bind address lets in."""

from __future__ import annotations

import socket

import pytest

from stowage.operator.serving.listening_socket import listening_socket, parse_bind_address
from tests.support.ipv6 import needs_ipv6


def _reachable(listening: socket.socket) -> list[str]:
    """The loopback addresses over which the socket can be reached."""
    port = listening.getsockname()[1]
    return [address for address in ("127.0.0.1", "::1") if _connects(address, port)]


def _connects(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=5.0).close()
    except OSError:
        return False
    return True


@needs_ipv6
@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_an_unspecified_address_is_both_of_ipv4_and_ipv6(address: str) -> None:
    with listening_socket(address, 0) as listening:
        assert _reachable(listening) == ["127.0.0.1", "::1"]


@needs_ipv6
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_another_address_is_itself_only(address: str) -> None:
    with listening_socket(address, 0) as listening:
        assert _reachable(listening) == [address]


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_an_unspecified_address_is_ipv4_on_a_host_without_ipv6(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with listening_socket(address, 0) as listening:
        assert _reachable(listening) == ["127.0.0.1"]


@pytest.mark.parametrize("has_ipv6", [True, False])
def test_processes_may_share_a_port(has_ipv6: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_ipv6:
        monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with listening_socket("0.0.0.0", 0, is_shared=True) as first:
        port = first.getsockname()[1]
        listening_socket("0.0.0.0", port, is_shared=True).close()
        with pytest.raises(OSError, match="in use"):
            listening_socket("0.0.0.0", port)


@needs_ipv6
def test_a_port_in_use_by_ipv4_only_is_refused() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        pytest.raises(OSError, match="in use"),
    ):
        listening_socket("::", other.getsockname()[1])


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("", "0.0.0.0"),
        (" 10.1.2.3 ", "10.1.2.3"),
        ("[::1]", "::1"),
        ("FE80::0:1", "fe80::1"),
    ],
)
def test_a_bind_address_may_have_brackets_and_is_any_address_if_empty(
    text: str, address: str
) -> None:
    assert parse_bind_address(text) == address


@pytest.mark.parametrize("text", ["localhost", "10.1.2", "[10.1.2.3"])
def test_a_bind_address_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="an IPv4 or IPv6 address"):
        parse_bind_address(text)
