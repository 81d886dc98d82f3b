"""Pods that wait for Permit plugins, and their deadlines."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from heapq import heappop, heappush

from stowage.api.status import Status, unschedulable
from stowage.api.values.duration import format_duration

_NO_DEADLINES: Mapping[str, float] = {}


class PermitWaits:
    """Which pods wait, for which plugins, until when; ``waitingPodsMap`` of v1.36.

    A pod is permitted when all its plugins have allowed it. It is rejected by the first plugin that
    rejects it or whose timeout passes.
    """

    def __init__(self) -> None:
        self._deadlines: dict[str, dict[str, float]] = {}
        self._since: dict[str, float] = {}
        # (deadline, uid, plugin, timeout), earliest first. Outdated entries are dropped when they
        # come first.
        self._earliest: list[tuple[float, str, str, float]] = []

    def __contains__(self, uid: str) -> bool:
        return uid in self._deadlines

    def add(self, uid: str, timeouts: Mapping[str, float], now: float) -> None:
        """A pod starts to wait; `timeouts` are in seconds, by plugin."""
        self._deadlines[uid] = {plugin: now + timeout for plugin, timeout in timeouts.items()}
        self._since[uid] = now
        for plugin, timeout in timeouts.items():
            heappush(self._earliest, (now + timeout, uid, plugin, timeout))

    def allow(self, uid: str, plugin: str) -> bool:
        """A plugin allows a pod; True if it was the last one, so that the pod is permitted."""
        deadlines = self._deadlines.get(uid)
        if deadlines is None or deadlines.pop(plugin, None) is None or deadlines:
            return False
        del self._deadlines[uid]
        return True

    def end(self, uid: str) -> float | None:
        """Forget a pod's wait.

        Returns:
            When it began; None if the pod does not wait.
        """
        self._deadlines.pop(uid, None)
        return self._since.pop(uid, None)

    def uids(self) -> Collection[str]:
        """The pods that wait."""
        return self._deadlines.keys()

    def plugins(self) -> dict[str, frozenset[str]]:
        """The plugins that each pod waits for, by UID."""
        return {uid: frozenset(deadlines) for uid, deadlines in self._deadlines.items()}

    def next_deadline(self) -> float | None:
        """The earliest deadline; None if no pod waits."""
        while self._earliest and not self._is_valid(*self._earliest[0][:3]):
            heappop(self._earliest)
        return self._earliest[0][0] if self._earliest else None

    def expire(self, now: float) -> list[tuple[str, Status]]:
        """Take out the pods whose deadline has passed, each with the plugin's rejection."""
        expired = []
        while self._earliest and self._earliest[0][0] <= now:
            deadline, uid, plugin, timeout = heappop(self._earliest)
            if self._is_valid(deadline, uid, plugin):
                del self._deadlines[uid]
                waited = format_duration(timeout)
                reason = f"rejected due to timeout after waiting {waited} at plugin {plugin}"
                expired.append((uid, unschedulable(reason, plugin=plugin)))
        return expired

    def _is_valid(self, deadline: float, uid: str, plugin: str) -> bool:
        return self._deadlines.get(uid, _NO_DEADLINES).get(plugin) == deadline
