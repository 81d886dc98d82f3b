"""What the server asks of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stowage.console.answers.answer import Answer
from stowage.console.clusters.moment import Moment
from stowage.console.clusters.timeline import Timeline
from stowage.framework import Framework


class NotReady(Exception):  # noqa: N818 - it names the finding
    """The cluster is still being read."""


class SourceName(Answer, frozen=True):
    """Where the objects come from.

    Attributes:
        kind: ``cluster``, ``files`` or ``recording``.
        name: The context, or the files.
        flags: The flags that name it on a command line.
    """

    kind: str
    name: str
    flags: str


CONNECTED = "connected"
RECONNECTING = "reconnecting"


class SourceState(Answer, frozen=True):
    """The connection to the API server: `CONNECTED` or `RECONNECTING`, and what it waits for."""

    state: str = CONNECTED
    message: str = ""


class ClusterSource(Protocol):
    """A cluster, at one time or at several ones."""

    name: SourceName
    is_live: bool
    state: SourceState
    frameworks: Sequence[Framework]
    notes: list[str]

    @property
    def version(self) -> int:
        """Counts the changes."""
        ...

    @property
    def timeline(self) -> Timeline | None:
        """The times of a recording; None without one."""
        ...

    async def at(self, unix_s: float | None) -> Moment:
        """The cluster at a time; None for the last one.

        Raises:
            NotReady: The cluster is still being read.
            InvalidQuestion: There is only one time.
        """
        ...
