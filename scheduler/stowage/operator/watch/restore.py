"""A restore of the API server from a backup, which ends the process."""

from __future__ import annotations

import asyncio

import structlog

log = structlog.get_logger("stowage.operator.watch.restore")


class Restore:
    """Notes that the API server was set back to an earlier state.

    Queue, assumed pods and writes in flight are of a past that the server does not know: nothing is
    written any more, and the process ends.
    """

    def __init__(self) -> None:
        self._noted = asyncio.Event()

    @property
    def is_noted(self) -> bool:
        """Whether there was a restore."""
        return self._noted.is_set()

    def note(self) -> None:
        """Note a restore."""
        self._noted.set()

    async def until_noted(self) -> None:
        """Return when there was a restore."""
        await self._noted.wait()
        log.error("the API server was set back to an earlier state")
