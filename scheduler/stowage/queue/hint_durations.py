"""How long plugins take to say whether an event helps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from stowage.api.events import ClusterEvent, QueueingHint
from stowage.queue.queue_events import event_label

#: (plugin, label of the event, what it said, seconds).
ObserveHint: TypeAlias = Callable[[str, str, str, float], None]

#: What a hint is taken to have said that raised.
ERROR = "Error"


class HintDurations:
    """Times hints once somebody wants to know.

    Attributes:
        is_followed: Whether somebody does.
    """

    __slots__ = ("_observe", "is_followed", "now")

    def __init__(self) -> None:
        self.is_followed = False
        self.now: Callable[[], float] = lambda: 0.0
        self._observe: ObserveHint | None = None

    def follow(self, timer: Callable[[], float], observe: ObserveHint) -> None:
        """Have every hint timed from now on; `timer` shows seconds."""
        self.is_followed, self.now, self._observe = True, timer, observe

    def observe(
        self, plugin: str, event: ClusterEvent, said: QueueingHint | None, started: float
    ) -> None:
        """A hint has answered, or raised if it said None."""
        if self._observe is not None:
            answer = ERROR if said is None else said.value
            self._observe(plugin, event_label(event), answer, self.now() - started)
