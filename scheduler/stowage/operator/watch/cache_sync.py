"""Whether what the engine knows is complete and recent enough to schedule from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import structlog

from stowage.operator.inbox import Inbox
from stowage.operator.watch.reflector import Reflector

log = structlog.get_logger("stowage.operator.watch.cache_sync")


class CacheSync:
    """What the engine knows of the cluster.

    What is in the inbox is not known yet: the loop hands it over a thousand events at a time.

    Args:
        inbox: What the engine has still to handle.
        has_synced: Whether all first lists are in the inbox.
        to_refresh: Who has to list once more before anything is scheduled; nobody if there is no
            leader election.
    """

    def __init__(
        self, inbox: Inbox, has_synced: Callable[[], bool], to_refresh: Sequence[Reflector[Any]]
    ) -> None:
        self._inbox = inbox
        self._has_synced = has_synced
        self._to_refresh = to_refresh
        self._is_complete = False
        self._is_current = False

    def is_complete(self) -> bool:
        """Whether the engine has handled everything listed at the start."""
        if not self._is_complete:
            self._is_complete = self._has_synced() and not len(self._inbox)
        return self._is_complete

    def is_current(self) -> bool:
        """Whether it has also handled the lists that `refresh` asked for."""
        if not self._is_current:
            are_fresh = all(reflector.is_fresh for reflector in self._to_refresh)
            self._is_current = are_fresh and self.is_complete() and not len(self._inbox)
        return self._is_current

    def refresh(self, at_least: int) -> None:
        """List once more: a watch may have been silent while the former leader bound pods.

        Args:
            at_least: The resource version from which on the former leader binds none.
        """
        log.info("lists anew before scheduling", kinds=[it.kind for it in self._to_refresh])
        self._is_current = False
        for reflector in self._to_refresh:
            reflector.refresh(at_least)
