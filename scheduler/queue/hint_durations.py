"""How long plugins take to say whether an event helps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from scheduler.api.events import ClusterEvent, QueueingHint
from scheduler.queue.queue_events import event_label

#: (plugin, label of the event, what it said, seconds).
ObserveHint: TypeAlias = Callable[[str, str, str, float], None]

#: What a hint is taken to have said that raised.
ERROR = "Error"


class HintDurations:
    """Times hints once somebody wants to know; until then a hint pays two comparisons."""

    __slots__ = ("_observe", "_timer")

    def __init__(self) -> None:
        self._timer: Callable[[], float] | None = None
        self._observe: ObserveHint | None = None

    def follow(self, timer: Callable[[], float], observe: ObserveHint) -> None:
        """Have every hint timed from now on; `timer` shows seconds."""
        self._timer, self._observe = timer, observe

    def now(self) -> float:
        """When a hint is asked; 0 if nobody wants to know."""
        return 0.0 if self._timer is None else self._timer()

    def observe(
        self, plugin: str, event: ClusterEvent, said: QueueingHint | None, started: float
    ) -> None:
        """A hint has answered, or raised if it said None."""
        if self._timer is not None and self._observe is not None:
            answer = ERROR if said is None else said.value
            self._observe(plugin, event_label(event), answer, self._timer() - started)
