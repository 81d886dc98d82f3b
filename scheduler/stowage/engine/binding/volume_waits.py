"""Pods being bound that wait for other objects: which ones, and until when."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from stowage.api.events import EventResource

Awaited = frozenset[tuple[EventResource, str]]
_NOTHING: Awaited = frozenset()


class Stages:
    """Which pods wait for which objects, by pod UID and by object."""

    def __init__(self) -> None:
        self._deadlines: dict[str, float] = {}
        self._awaited: dict[str, Awaited] = {}
        self._awaiting: dict[tuple[EventResource, str], dict[str, None]] = {}
        # (deadline, uid), soonest first; entries that hold no more are dropped on the way.
        self._soonest: list[tuple[float, str]] = []

    def __contains__(self, uid: str) -> bool:
        return uid in self._deadlines

    def uids(self) -> Iterable[str]:
        """The pods that wait."""
        return self._deadlines.keys()

    def start(self, uid: str, deadline: float) -> None:
        """A pod begins to wait."""
        self._deadlines[uid] = deadline
        heappush(self._soonest, (deadline, uid))

    def wait(self, uid: str, awaited: Awaited) -> None:
        """These are the objects the pod waits for from now on."""
        self._set_awaited(uid, awaited)

    def end(self, uid: str) -> None:
        """The pod waits no longer, for whatever reason; unknown pods are no error."""
        if self._deadlines.pop(uid, None) is not None:
            self._set_awaited(uid, _NOTHING)

    def awaiting(self, resource: EventResource, key: str) -> list[str]:
        """The pods that wait for an object, in the order they came."""
        return list(self._awaiting.get((resource, key), ()))

    def next_deadline(self) -> float | None:
        """When the first pod has waited long enough; None if none waits."""
        while self._soonest and not self._holds(*self._soonest[0]):
            heappop(self._soonest)
        return self._soonest[0][0] if self._soonest else None

    def expired(self, now: float) -> list[str]:
        """Take out the pods that have waited long enough."""
        late = []
        while self._soonest and self._soonest[0][0] <= now:
            deadline, uid = heappop(self._soonest)
            if self._holds(deadline, uid):
                self.end(uid)
                late.append(uid)
        return late

    def _holds(self, deadline: float, uid: str) -> bool:
        return self._deadlines.get(uid) == deadline

    def _set_awaited(self, uid: str, awaited: Awaited) -> None:
        before = self._awaited.pop(uid, _NOTHING)
        for each in before - awaited:
            pods = self._awaiting[each]
            del pods[uid]
            if not pods:
                del self._awaiting[each]
        for each in awaited:
            self._awaiting.setdefault(each, {})[uid] = None
        if awaited:
            self._awaited[uid] = awaited
