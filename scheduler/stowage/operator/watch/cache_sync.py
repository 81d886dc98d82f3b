"""Cache sync: whether the engine's state is complete and recent enough to schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import structlog

from stowage.operator.inbox import Inbox
from stowage.operator.watch.reflector import Reflector

log = structlog.get_logger("stowage.operator.watch.cache_sync")


class CacheSync:
    """Tells whether the engine has handled all lists.

    Args:
        inbox: Holds the events that the engine has not handled yet.
        has_synced: Whether all first lists are in the inbox.
        to_refresh: The reflectors that list again when this replica becomes the leader; empty
            without leader election.
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
        """Whether the engine has handled all first lists."""
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
        """List again: a watch may have missed pods that the previous leader bound.

        Args:
            at_least: Resource version after which the previous leader binds no pod.
        """
        log.info("listing again before scheduling", kinds=[it.kind for it in self._to_refresh])
        self._is_current = False
        for reflector in self._to_refresh:
            reflector.refresh(at_least)
