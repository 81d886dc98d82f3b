"""Evictions for pod groups, and the groups that wait for the end of victims."""

from __future__ import annotations

from collections.abc import Iterable

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
    """The evictions that the API server has not answered, by the UID of their victim.

    Also the victims that groups wait for, whether the group or its members evict them.
    """

    def __init__(self) -> None:
        self._unanswered: dict[str, GroupEviction] = {}
        # Key of a group -> UIDs of the victims that are not gone yet.
        self._awaited: dict[str, dict[str, None]] = {}
        # UID of a victim -> keys of the groups that wait for its end.
        self._waiting: dict[str, dict[str, None]] = {}

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

    def await_end(self, group_key: str, victim_uids: Iterable[str]) -> None:
        """A group waits until all these victims are gone, and for no others any more."""
        for uid in self._awaited.pop(group_key, ()):
            self._forget(uid, group_key)
        victims = dict.fromkeys(victim_uids)
        if victims:
            self._awaited[group_key] = victims
        for uid in victims:
            self._waiting.setdefault(uid, {})[group_key] = None

    def victim_is_gone(self, uid: str) -> list[str]:
        """A pod is gone: the groups for which it was the last victim."""
        complete: list[str] = []
        for key in self._waiting.pop(uid, ()):
            victims = self._awaited[key]
            del victims[uid]
            if not victims:
                del self._awaited[key]
                complete.append(key)
        return complete

    def _forget(self, victim_uid: str, group_key: str) -> None:
        groups = self._waiting[victim_uid]
        del groups[group_key]
        if not groups:
            del self._waiting[victim_uid]
