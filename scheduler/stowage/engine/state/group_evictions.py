"""Evictions for pod groups that the API server has not answered."""

from __future__ import annotations

import msgspec

from stowage.api.instructions import PodReference


class GroupEviction(msgspec.Struct, frozen=True):
    """An eviction for a group.

    Attributes:
        group: The preemptor, a pod group.
        group_key: ``namespace/name`` of the group.
        scheduler_name: The profile of its members.
    """

    group: PodReference
    group_key: str
    scheduler_name: str


class GroupEvictions:
    """The evictions by the UID of their victim."""

    def __init__(self) -> None:
        self._unanswered: dict[str, GroupEviction] = {}

    def __contains__(self, victim_uid: str) -> bool:
        return victim_uid in self._unanswered

    def start(self, victim_uid: str, eviction: GroupEviction) -> None:
        """An eviction was sent."""
        self._unanswered[victim_uid] = eviction

    def end(self, victim_uid: str, preemptor_uid: str) -> GroupEviction | None:
        """An eviction was answered; None if it was not for a group."""
        eviction = self._unanswered.get(victim_uid)
        if eviction is None or eviction.group.uid != preemptor_uid:
            return None
        return self._unanswered.pop(victim_uid)
