"""The listening socket of the endpoints: one IP address, or all addresses of IPv4 and IPv6."""

from __future__ import annotations

import ipaddress
import socket

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - kubelet and Prometheus come from outside the pod


def parse_bind_address(text: str) -> str:
    """The IP address that a flag names, without the brackets of a URL; `ANY_ADDRESS` for none.

    Raises:
        ValueError: it is no IP address; the text is what was expected.
    """
    bare = text.strip()
    if bare.startswith("[") and bare.endswith("]"):
        bare = bare[1:-1]
    try:
        return str(ipaddress.ip_address(bare or ANY_ADDRESS))
    except ValueError as error:
        raise ValueError("an IPv4 or IPv6 address") from error


def listening_socket(address: str, port: int, *, is_shared: bool = False) -> socket.socket:
    """Open a socket that listens on an IP address.

    As Go's ``net.Listen``, ``0.0.0.0`` and ``::`` stand for all addresses of IPv4 and IPv6, and for
    those of IPv4 on a host without IPv6.

    Args:
        address: As `parse_bind_address` returns it.
        port: Port; 0 lets the system choose one.
        is_shared: Whether other processes may listen on the port, too.

    Raises:
        OSError: the address is in use, or the host does not have it.
    """
    parsed = ipaddress.ip_address(address)
    if parsed.is_unspecified and socket.has_dualstack_ipv6():
        return socket.create_server(
            ("::", port), family=socket.AF_INET6, reuse_port=is_shared, dualstack_ipv6=True
        )
    if parsed.is_unspecified:
        return socket.create_server((ANY_ADDRESS, port), reuse_port=is_shared)
    family = socket.AF_INET6 if parsed.version == 6 else socket.AF_INET
    return socket.create_server((address, port), family=family, reuse_port=is_shared)
