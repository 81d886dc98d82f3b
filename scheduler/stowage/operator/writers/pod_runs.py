"""The work in progress for each pod, which can be stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class _Run:
    def __init__(self) -> None:
        self.stopped = asyncio.Event()
        self.ended = asyncio.Event()


class PodRuns:
    """At most one run a pod is in progress.

    A stopped run may take its time to end. Meanwhile the engine may try the pod again, perhaps on
    another node: the next run begins when the stopped one has ended.
    """

    def __init__(self) -> None:
        self._latest: dict[str, _Run] = {}

    @asynccontextmanager
    async def begin(self, uid: str) -> AsyncIterator[asyncio.Event]:
        """Wait for the pod's earlier run, and then run; yields the event that `stop` sets."""
        earlier = self._latest.get(uid)
        run = self._latest[uid] = _Run()
        try:
            if earlier is not None:
                await earlier.ended.wait()
            yield run.stopped
        finally:
            run.ended.set()
            if self._latest.get(uid) is run:
                del self._latest[uid]

    def stop(self, uid: str) -> None:
        """Stop the pod's latest run, if any."""
        run = self._latest.get(uid)
        if run is not None:
            run.stopped.set()
