"""Log lines about extenders that fail: one for each event and minute, not one for each pod."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from stowage.operator import clock

REPEAT_AFTER_S = 60.0
"""The same event is logged again after this time."""

log = structlog.get_logger("stowage.operator.extenders.failure_log")


class FailureLog:
    """Logs each event once a minute, and how many lines it left out in between.

    Args:
        fields: Fields of every line.
        monotonic: Returns monotonic seconds.
    """

    def __init__(self, monotonic: Callable[[], float] = clock.monotonic, **fields: object) -> None:
        self._monotonic = monotonic
        self._fields = fields
        self._logged_at: dict[str, float] = {}
        self._num_suppressed: dict[str, int] = {}

    def warning(self, event: str, **fields: object) -> None:
        """Log an event unless it was logged within the last minute."""
        now = self._monotonic()
        if now - self._logged_at.get(event, -REPEAT_AFTER_S) < REPEAT_AFTER_S:
            self._num_suppressed[event] = self._num_suppressed.get(event, 0) + 1
            return
        self._logged_at[event] = now
        suppressed = self._num_suppressed.pop(event, 0)
        counted = {"suppressed": suppressed} if suppressed else {}
        log.warning(event, **self._fields, **fields, **counted)
