"""Detects watch events that are older than another event or list of the same object.

The API server sends each event once and in order; a proxy may repeat, delay or reorder them.
"""

from __future__ import annotations

from collections import OrderedDict

REMEMBERED = 4096
"""Objects whose latest version is remembered; an event older than all of these counts as stale."""

Key = tuple[str, str]


class StaleEventFilter:
    """Compares the version of each event with the latest version of its object.

    Memory and work per event are bounded: an event that is older than every remembered version
    counts as stale.

    Args:
        size: Number of objects whose latest version is remembered.
    """

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._latest: OrderedDict[Key, int] = OrderedDict()
        self._stale_up_to = 0

    def listed(self, version: int) -> None:
        """Start again from a list, which contains every change up to its version."""
        self._latest.clear()
        self._stale_up_to = version

    def is_new(self, key: Key, version: int) -> bool:
        """Whether an event is newer than every earlier one of its object; remembers its version.

        A version of 0 is unknown and always new.
        """
        if not version:
            return True
        if version <= self._latest.get(key, self._stale_up_to):
            return False
        self._latest[key] = version
        self._latest.move_to_end(key)
        if len(self._latest) > self._size:
            self._stale_up_to = max(self._stale_up_to, self._latest.popitem(last=False)[1])
        return True
