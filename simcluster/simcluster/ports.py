"""Reserves ports for servers that start later."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved_port(host: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """Reserve a port; port 0 takes a free one.

    A server can listen on it with SO_REUSEADDR, which asyncio and uvloop set. Only Linux lets two
    sockets share a port like this; elsewhere the port is not reserved.

    Raises:
        OSError: the port is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as placeholder:
        placeholder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        placeholder.bind((host, port))
        number: int = placeholder.getsockname()[1]
        if sys.platform != "linux":
            placeholder.close()
        yield number
