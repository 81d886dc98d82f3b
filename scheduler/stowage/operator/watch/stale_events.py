"""What of a watch is news: its events may come twice, late, or in another order than they happened.

The API server sends them in order and once; what stands between may not.
"""

from __future__ import annotations

from collections import OrderedDict

REMEMBERED = 4096
"""How many objects' latest events are remembered. What is older than these is no news."""

Key = tuple[str, str]


class StaleEventFilter:
    """Compares each event with what was last heard of its object.

    Memory and work per event are bounded: an event that is older than everything remembered counts
    as heard before.

    Args:
        size: Of how many objects the latest version is remembered.
    """

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._latest: OrderedDict[Key, int] = OrderedDict()
        self._heard_up_to = 0

    def listed(self, version: int) -> None:
        """Begin anew from a list: what happened up to its version is in it."""
        self._latest.clear()
        self._heard_up_to = version

    def is_new(self, key: Key, version: int) -> bool:
        """Whether an event says something new of its object, which counts as heard from now on.

        A version of 0 is unknown, and always news.
        """
        if not version:
            return True
        if version <= self._latest.get(key, self._heard_up_to):
            return False
        self._latest[key] = version
        self._latest.move_to_end(key)
        if len(self._latest) > self._size:
            self._heard_up_to = max(self._heard_up_to, self._latest.popitem(last=False)[1])
        return True
