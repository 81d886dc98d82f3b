"""Pods that wait for other objects before they are bound: which ones, and until when.

They wait until their volumes are bound, and until their devices are ready.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import TypeAlias

from stowage.api.cluster_events import EventResource

AwaitedObjects: TypeAlias = frozenset[tuple[EventResource, str]]
_NOTHING: AwaitedObjects = frozenset()


class ObjectWaits:
    """Which pods wait for which objects, by pod UID and by object."""

    def __init__(self) -> None:
        self._deadlines: dict[str, float] = {}
        self._awaited: dict[str, AwaitedObjects] = {}
        self._pods_by_object: dict[tuple[EventResource, str], dict[str, None]] = {}
        # (deadline, uid), earliest first. Outdated entries are dropped when they come first.
        self._earliest: list[tuple[float, str]] = []

    def uids(self) -> Iterable[str]:
        """The pods that wait."""
        return self._deadlines.keys()

    def start(self, uid: str, deadline: float) -> None:
        """A pod starts to wait."""
        self._deadlines[uid] = deadline
        heappush(self._earliest, (deadline, uid))

    def shorten(self, uid: str, deadline: float) -> None:
        """Let a pod that waits time out at `deadline`, if that is earlier."""
        if deadline < self._deadlines.get(uid, deadline):
            self.start(uid, deadline)

    def set_awaited(self, uid: str, awaited: AwaitedObjects) -> None:
        """Replace the objects that a pod waits for."""
        before = self._awaited.pop(uid, _NOTHING)
        for each in before - awaited:
            pods = self._pods_by_object[each]
            del pods[uid]
            if not pods:
                del self._pods_by_object[each]
        for each in awaited:
            self._pods_by_object.setdefault(each, {})[uid] = None
        if awaited:
            self._awaited[uid] = awaited

    def end(self, uid: str) -> None:
        """Forget a pod's wait, if it waits."""
        if self._deadlines.pop(uid, None) is not None:
            self.set_awaited(uid, _NOTHING)

    def pods_awaiting(self, resource: EventResource, key: str) -> list[str]:
        """The pods that wait for an object, in the order in which they started to wait."""
        return list(self._pods_by_object.get((resource, key), ()))

    def next_deadline(self) -> float | None:
        """The earliest deadline; None if no pod waits."""
        while self._earliest and not self._is_valid(*self._earliest[0]):
            heappop(self._earliest)
        return self._earliest[0][0] if self._earliest else None

    def expire(self, now: float) -> list[str]:
        """Take out the pods whose deadline has passed."""
        expired = []
        while self._earliest and self._earliest[0][0] <= now:
            deadline, uid = heappop(self._earliest)
            if self._is_valid(deadline, uid):
                self.end(uid)
                expired.append(uid)
        return expired

    def _is_valid(self, deadline: float, uid: str) -> bool:
        return self._deadlines.get(uid) == deadline
