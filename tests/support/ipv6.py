"""Whether this host has IPv6, which containers often lack."""

from __future__ import annotations

import socket

import pytest


def _has_loopback_address() -> bool:
    """A kernel may know IPv6 while no interface has an address of it."""
    if not socket.has_dualstack_ipv6():
        return False
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not _has_loopback_address(), reason="this host has no IPv6")
