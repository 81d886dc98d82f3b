"""Pod groups according to the history: a gang is bound as a whole or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from stowage_benchmarks.chaos.history import GroupChange, PodChange

_FINISHED = ("Succeeded", "Failed")


@dataclass(slots=True)
class SeenGang:
    """A gang, and its members by UID.

    Attributes:
        min_count: How many members it needs; None while the group is not there.
        members: The unfinished members.
        bound: The members that were ever bound.
        gone: The members that have ended, or were deleted.
        was_whole: Whether as many members as it needs were bound.
    """

    min_count: int | None = None
    members: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    was_whole: bool = False

    @property
    def is_held(self) -> bool:
        """Whether its pending members have to wait: the group or some companions are missing."""
        return self.min_count is None or len(self.members) < self.min_count


@dataclass(slots=True)
class GangLedger:
    """All gangs that have existed and have not been deleted.

    Attributes:
        by_name: The gangs, by the name of the group.
    """

    by_name: dict[str, SeenGang] = field(default_factory=dict)

    def take_group(self, line: GroupChange) -> None:
        """Process a change of a group."""
        if line.change == "DELETED":
            gang = self.by_name.get(line.name)
            if gang is not None:
                gang.min_count = None
            if gang is not None and not gang.members:
                del self.by_name[line.name]
        else:
            self.by_name.setdefault(line.name, SeenGang()).min_count = line.min_count

    def take_pod(self, line: PodChange, counts: Counter[str]) -> None:
        """Process a change of a pod, if it is a member: count gangs that get whole."""
        if not line.group:
            return
        gang = self.by_name.setdefault(line.group, SeenGang())
        if line.is_restored:
            # It is as it was in the backup, which says whether it is bound.
            gang.bound.discard(line.uid)
            gang.gone.discard(line.uid)
        if line.node and line.change != "DELETED" and line.uid not in gang.bound:
            gang.bound.add(line.uid)
            counts["members of gangs bound"] += 1
        if line.change == "DELETED" or line.phase in _FINISHED:
            gang.members.discard(line.uid)
            gang.gone.add(line.uid)
        else:
            gang.members.add(line.uid)
        is_whole = gang.min_count is not None and len(gang.bound) >= gang.min_count
        if is_whole and not gang.was_whole:
            gang.was_whole = True
            counts["gangs bound"] += 1

    def held(self) -> set[str]:
        """UIDs of the members that have to wait because their gang lacks others."""
        gangs = self.by_name.values()
        return {uid for gang in gangs if gang.is_held for uid in gang.members - gang.bound}

    def ended(self) -> list[str]:
        """The names of the groups whose members have all gone."""
        return [
            name
            for name, gang in self.by_name.items()
            if gang.min_count is not None and gang.gone and not gang.members
        ]

    def torn(self) -> Iterator[str]:
        """A sentence for each gang of which only a part is bound, though the others are there.

        Members that have gone since count as bound: nobody waits for their replacement.
        """
        for name, gang in sorted(self.by_name.items()):
            num_bound = len(gang.bound | gang.gone)
            if gang.bound and not gang.is_held and num_bound < (gang.min_count or 0):
                yield f"gang {name} is left with {num_bound} of at least {gang.min_count} members"
