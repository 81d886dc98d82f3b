"""A priority heap whose members can be looked up, replaced and removed by key."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")

#: The member with the smallest key is first; the keys of one heap must be comparable.
SortKey: TypeAlias = tuple[Any, ...]

# A bulk smaller than one in so many entries is pushed one by one, else the heap is rebuilt.
_FEW = 8
# So much garbage is kept, because rebuilding a small heap costs more.
_MIN_GARBAGE = 64


# (sort key, turn, number, uid, member). The number tells the entry of a member from its garbage. It
# is unique, so members are never compared. Creating a plain tuple takes a quarter of the time of a
# named tuple, and bulks create many.
_Entry: TypeAlias = tuple[SortKey, int, int, str, T]


class KeyedHeap(Generic[T]):
    """Members by UID, smallest sort key first; among equal keys smallest turn, then first in.

    Removal only deletes the member; its heap entry is garbage and skipped when it becomes the
    first. There are never more than ``members + 64`` garbage entries, so memory is proportional to
    the members and each operation is O(log n) amortised.
    """

    __slots__ = ("_entries", "_members", "_next_number")

    def __init__(self) -> None:
        self._entries: list[_Entry[T]] = []
        self._members: dict[str, _Entry[T]] = {}
        self._next_number = 0

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, uid: str) -> bool:
        return uid in self._members

    def __iter__(self) -> Iterator[T]:
        """All members, in no particular order."""
        return (entry[4] for entry in self._members.values())

    def in_order(self) -> list[T]:
        """All members in the order in which `pop` would return them; O(n log n)."""
        return [entry[4] for entry in sorted(self._members.values())]

    def get(self, uid: str) -> T | None:
        """The member with this UID, if any."""
        found = self._members.get(uid)
        return None if found is None else found[4]

    def push(self, uid: str, sort_key: SortKey, member: T, turn: int = 0) -> None:
        """Add a member or replace the one with that UID; with equal key and turn it stays in place.

        Args:
            uid: The UID.
            sort_key: The smallest is first.
            member: The member.
            turn: The smallest is first among equal keys.
        """
        known = self._members.get(uid)
        if known is not None and known[0] == sort_key and known[1] == turn:
            self._members[uid] = (sort_key, turn, known[2], uid, member)
            return
        number = self._next_number
        self._next_number = number + 1
        entry = self._members[uid] = (sort_key, turn, number, uid, member)
        heapq.heappush(self._entries, entry)
        if known is not None:
            self._drop_garbage()

    def push_all(
        self,
        uids: Sequence[str],
        sort_keys: Sequence[SortKey],
        members: Sequence[T],
        turns: Sequence[int],
    ) -> None:
        """`push` many members; O(1) each if they outnumber the present ones."""
        if not self._members.keys().isdisjoint(uids):
            for each in zip(uids, sort_keys, members, turns, strict=True):
                self.push(*each)
            return
        numbers = range(self._next_number, self._next_number + len(uids))
        self._next_number = numbers.stop
        added = list(zip(sort_keys, turns, numbers, uids, members, strict=True))
        self._members.update(zip(uids, added, strict=True))
        entries = self._entries
        if len(added) * _FEW < len(entries):
            for entry in added:
                heapq.heappush(entries, entry)
        elif added:
            entries += added
            heapq.heapify(entries)

    def peek(self) -> tuple[SortKey, T] | None:
        """The first member and its sort key, without removing it."""
        while self._entries:
            _, _, number, uid, _ = self._entries[0]
            found = self._members.get(uid)
            if found is not None and found[2] == number:
                return found[0], found[4]
            heapq.heappop(self._entries)
        return None

    def pop(self) -> T | None:
        """Remove and return the first member; None when empty."""
        while self._entries:
            _, _, number, uid, _ = heapq.heappop(self._entries)
            found = self._members.get(uid)
            if found is not None and found[2] == number:
                del self._members[uid]
                return found[4]
        return None

    def remove(self, uid: str) -> T | None:
        """Remove and return the member with this UID; None if there is none."""
        found = self._members.pop(uid, None)
        if found is None:
            return None
        self._drop_garbage()
        return found[4]

    def inconsistencies(self) -> Iterator[str]:
        """Violated invariants, as text."""
        entries = self._entries
        for child in range(1, len(entries)):
            if entries[child] < entries[(child - 1) // 2]:
                yield f"entry {child} is smaller than its parent"
        present = {entry[2] for entry in entries}
        for uid, (_, _, number, _, _) in self._members.items():
            if number not in present:
                yield f"member {uid} has no entry"
        if len(entries) > 2 * len(self._members) + _MIN_GARBAGE:
            yield f"{len(entries)} entries for {len(self._members)} members"

    def _drop_garbage(self) -> None:
        if len(self._entries) > 2 * len(self._members) + _MIN_GARBAGE:
            self._entries = list(self._members.values())
            heapq.heapify(self._entries)
