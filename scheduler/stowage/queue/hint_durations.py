"""Durations of queueing hints, for a metric."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from stowage.api.cluster_events import ClusterEvent, QueueingHint
from stowage.queue.queue_events import event_label

#: (plugin, label of the event, answer, seconds).
ObserveHint: TypeAlias = Callable[[str, str, str, float], None]

#: The answer reported for a hint that raised.
ERROR = "Error"


class HintDurations:
    """Passes the durations of hints to an observer; takes no time before `follow` names one.

    Attributes:
        is_followed: Whether there is an observer.
        now: The observer's timer, in seconds.
    """

    __slots__ = ("_observe", "is_followed", "now")

    def __init__(self) -> None:
        self.is_followed = False
        self.now: Callable[[], float] = lambda: 0.0
        self._observe: ObserveHint | None = None

    def follow(self, timer: Callable[[], float], observe: ObserveHint) -> None:
        """Time every hint from now on; `timer` returns seconds."""
        self.is_followed, self.now, self._observe = True, timer, observe

    def observe(
        self, plugin: str, event: ClusterEvent, said: QueueingHint | None, started: float
    ) -> None:
        """Report a hint that answered, or raised if `said` is None."""
        if self._observe is not None:
            answer = ERROR if said is None else said.value
            self._observe(plugin, event_label(event), answer, self.now() - started)
