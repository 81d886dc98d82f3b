"""What happened to each pod in one life of a cluster, and the times that pods were pending."""

from __future__ import annotations

import math
from collections.abc import Collection

import msgspec


class PodStory(msgspec.Struct):
    """What happened to one pod; a pod that replaces a preempted one continues its story.

    Attributes:
        key: ``namespace/name``.
        seen: When the pod was first seen, in seconds of the engine's clock.
        was_pending: Whether it had no node then.
        node: Its last node; empty while it has none.
        placed: When it got its first node; None if it got none.
        gone: When it was deleted or finished; None if it was not.
        tied: Whether other nodes were as good as its last one.
    """

    key: str
    seen: float
    was_pending: bool
    node: str = ""
    placed: float | None = None
    gone: float | None = None
    tied: bool = False

    def place(self, node: str, now: float) -> None:
        """The pod got a node."""
        self.node = node
        self.gone = None
        if self.placed is None:
            self.placed = now


class PendingTimes(msgspec.Struct, frozen=True, rename="camel"):
    """How long pods were pending, in seconds, from when they were seen to their first node.

    A pod that got no node counts until it was gone, or until the end.
    """

    mean_s: float
    p50_s: float
    p99_s: float


def pending_times(stories: Collection[PodStory], ended: float) -> PendingTimes:
    """The times of the pods that were seen without a node; percentiles by nearest rank."""
    times = sorted(_pending_s(each, ended) for each in stories if each.was_pending)
    if not times:
        return PendingTimes(0.0, 0.0, 0.0)
    p50, p99 = (times[math.ceil(share * len(times)) - 1] for share in (0.5, 0.99))
    return PendingTimes(*(round(each, 3) for each in (sum(times) / len(times), p50, p99)))


def _pending_s(story: PodStory, ended: float) -> float:
    ends = [each for each in (story.placed, story.gone, ended) if each is not None]
    return max(0.0, min(ends) - story.seen)
