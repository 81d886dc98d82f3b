"""Pods that a Permit plugin made wait, and until when."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush

from stowage.api.status import Status, unschedulable
from stowage.api.values.duration import format_duration

_NO_DEADLINES: Mapping[str, float] = {}


class WaitingPods:
    """Which pods wait, for which plugins, until when.

    A pod goes on when all its plugins have allowed it, and is rejected by the first plugin that
    rejects it or whose time runs out.
    """

    def __init__(self) -> None:
        self._deadlines: dict[str, dict[str, float]] = {}
        # (deadline, uid, plugin, limit), soonest first; entries that hold no more are dropped on
        # the way.
        self._soonest: list[tuple[float, str, str, float]] = []

    def __contains__(self, uid: str) -> bool:
        return uid in self._deadlines

    def __len__(self) -> int:
        return len(self._deadlines)

    def add(self, uid: str, timeouts: Mapping[str, float], now: float) -> None:
        """Let the pod wait for each plugin of `timeouts`, that many seconds."""
        self._deadlines[uid] = {plugin: now + limit for plugin, limit in timeouts.items()}
        for plugin, limit in timeouts.items():
            heappush(self._soonest, (now + limit, uid, plugin, limit))

    def allow(self, uid: str, plugin: str) -> bool:
        """One plugin agrees; True when that was the last one and the pod goes on."""
        deadlines = self._deadlines.get(uid)
        if deadlines is None or deadlines.pop(plugin, None) is None or deadlines:
            return False
        del self._deadlines[uid]
        return True

    def plugins(self) -> dict[str, frozenset[str]]:
        """Which plugins each pod waits for, by UID."""
        return {uid: frozenset(deadlines) for uid, deadlines in self._deadlines.items()}

    def remove(self, uid: str) -> None:
        """The pod waits no longer, for whatever reason; unknown pods are no error."""
        self._deadlines.pop(uid, None)

    def next_deadline(self) -> float | None:
        """When the first pod's time runs out, or None if none waits."""
        while self._soonest and not self._holds(*self._soonest[0][:3]):
            heappop(self._soonest)
        return self._soonest[0][0] if self._soonest else None

    def expire(self, now: float) -> list[tuple[str, Status]]:
        """Take out the pods whose time has run out, with the rejection of the plugin at fault."""
        expired = []
        while self._soonest and self._soonest[0][0] <= now:
            deadline, uid, plugin, limit = heappop(self._soonest)
            if self._holds(deadline, uid, plugin):
                del self._deadlines[uid]
                waited = format_duration(limit)
                reason = f"rejected due to timeout after waiting {waited} at plugin {plugin}"
                expired.append((uid, unschedulable(reason, plugin=plugin)))
        return expired

    def _holds(self, deadline: float, uid: str, plugin: str) -> bool:
        return self._deadlines.get(uid, _NO_DEADLINES).get(plugin) == deadline
