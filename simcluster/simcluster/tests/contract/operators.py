"""Kopf operators that contract tests run."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import kopf

from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S


@contextmanager
def operator(
    server: ApiServerUnderTest, register: Callable[[Any], None], **options: Any
) -> Iterator[None]:
    """Run a Kopf operator in a separate thread, by default standalone in the namespace ``default``.

    Args:
        server: the API server whose resources it handles.
        register: adds its handlers to a registry.
        options: further ones of ``kopf.operator``.
    """
    alone: dict[str, Any] = {"standalone": True, "namespaces": ["default"]}
    chosen = options or alone
    registry = kopf.OperatorRegistry()

    def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(
            server=server.url, token=server.token or None, scheme="Bearer", insecure=True
        )

    kopf.on.login(registry=registry)(login)
    register(registry)
    settings = kopf.OperatorSettings()
    settings.posting.enabled = True
    ready, stop = threading.Event(), threading.Event()

    def run() -> None:
        asyncio.run(
            kopf.operator(
                registry=registry,
                settings=settings,
                **chosen,
                ready_flag=ready,
                stop_flag=stop,
            )
        )

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(WAIT_TIMEOUT_S)
        yield
    finally:
        stop.set()
        thread.join()
