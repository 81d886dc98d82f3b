"""Ports that are chosen before somebody listens on them."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved_port(host: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """A port that nobody else is given meanwhile; 0 takes a free one.

    Who knows it can listen on it, if its socket has SO_REUSEADDR, as those of servers of asyncio
    and uvloop have. Only Linux lets two sockets share a port so; elsewhere it is not kept.

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
