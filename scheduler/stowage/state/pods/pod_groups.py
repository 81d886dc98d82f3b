"""Pod groups, and which of their pods are pending, assumed or assigned.

A group is known by namespace and name, not by UID, as in kube-scheduler v1.36
(``podgroupstate``): a group that is deleted and made anew goes on with its members. Members are
counted whether or not the group exists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from stowage.api.objects.pod_groups import CORE_GROUPS, PodGroup
from stowage.state.changes import is_older
from stowage.state.pods.pod_info import PodInfo
from stowage.state.violation import InvariantViolation


class KnownGroup(msgspec.Struct, frozen=True):
    """A pod group as its source shows it.

    Attributes:
        group: The group.
        source: The API group that it comes from.
        permit_timeout_s: How long a member waits for its companions; None for the default.
    """

    group: PodGroup
    source: str = CORE_GROUPS
    permit_timeout_s: int | None = None


class GroupMembers(msgspec.Struct, frozen=True):
    """The UIDs of a group's pods, each in one of three places, in the order of arrival.

    Attributes:
        unscheduled: Pending pods that are not assumed on a node.
        assumed: Pods that are assumed on a node and not bound yet.
        assigned: Pods that are bound, whoever bound them.
    """

    unscheduled: dict[str, None] = msgspec.field(default_factory=dict)
    assumed: dict[str, None] = msgspec.field(default_factory=dict)
    assigned: dict[str, None] = msgspec.field(default_factory=dict)

    @property
    def num_all(self) -> int:
        """The number of pods of the group."""
        return len(self.unscheduled) + self.num_scheduled

    @property
    def num_scheduled(self) -> int:
        """The number of pods that are assumed or assigned."""
        return len(self.assumed) + len(self.assigned)

    def scheduled(self) -> Iterator[str]:
        """The UIDs of the pods that are assumed or assigned."""
        yield from self.assigned
        yield from self.assumed


_NO_MEMBERS = GroupMembers()


class PodGroups:
    """Groups by key ``namespace/name``, each with its members.

    Methods ignore pods that are members of no group, so that callers need not ask.
    """

    def __init__(self) -> None:
        # The sources that are known not to be served.
        self._unserved: set[str] = set()
        # Key -> source -> group. Two sources may have a group of the same name.
        self._groups: dict[str, dict[str, KnownGroup]] = {}
        self._members: dict[str, GroupMembers] = {}
        # UID of an unscheduled pod -> key of its group; the end of a pod shows only its UID.
        self._pending: dict[str, str] = {}

    def group(self, key: str) -> KnownGroup | None:
        """The group; that of ``scheduling.k8s.io`` if several sources have it."""
        sources = self._groups.get(key)
        if sources is None:
            return None
        return sources.get(CORE_GROUPS) or next(iter(sources.values()))

    def groups(self) -> Iterator[KnownGroup]:
        """Every group that exists."""
        return (known for sources in self._groups.values() for known in sources.values())

    def members(self, key: str) -> GroupMembers:
        """The pods of a group; callers must not write."""
        return self._members.get(key, _NO_MEMBERS)

    def keys(self) -> Collection[str]:
        """The groups that have members."""
        return self._members.keys()

    def honours(self, pod: PodInfo) -> bool:
        """Whether a pod is scheduled as a member of a group.

        Not while the API server does not serve the kind of the group it names.
        """
        if not self._unserved or not pod.group:
            return bool(pod.group)
        return pod.group_source not in self._unserved or pod.group_key in self._groups

    def set_served(self, source: str, is_served: bool) -> bool:
        """Note whether the kind of a source is served; whether this is news."""
        if is_served == (source not in self._unserved):
            return False
        if is_served:
            self._unserved.remove(source)
        else:
            self._unserved.add(source)
        return True

    def pending(self) -> Collection[str]:
        """The UIDs of the pods that name a group and wait to be scheduled."""
        return self._pending.keys()

    def put(self, known: KnownGroup) -> tuple[KnownGroup | None, bool]:
        """Add or update a group.

        Returns:
            The group as it was before, and whether this one is news: it is not older.
        """
        sources = self._groups.setdefault(known.group.key, {})
        old = sources.get(known.source)
        if old is not None and _is_outdated(old.group, known.group):
            return old, False
        sources[known.source] = known
        return old, True

    def drop(self, key: str, source: str) -> KnownGroup | None:
        """Remove a group that was deleted; None if it is unknown. Its members stay."""
        sources = self._groups.get(key, {})
        old = sources.pop(source, None)
        if not sources:
            self._groups.pop(key, None)
        return old

    def see_pending(self, pod: PodInfo) -> None:
        """A pending pod is waiting to be scheduled."""
        if self._pending.get(pod.uid, "") != pod.group_key:
            self.forget_pending(pod.uid)
        if pod.group:
            self._members_of(pod).unscheduled[pod.uid] = None
            self._pending[pod.uid] = pod.group_key

    def see_assumed(self, pod: PodInfo) -> None:
        """A pod is assumed on a node."""
        if pod.group:
            self._members_of(pod).assumed[pod.uid] = None
            self.forget_pending(pod.uid)

    def see_assigned(self, pod: PodInfo) -> None:
        """A pod is bound."""
        if pod.group:
            members = self._members_of(pod)
            members.assumed.pop(pod.uid, None)
            members.assigned[pod.uid] = None
            self.forget_pending(pod.uid)

    def forget_pending(self, uid: str) -> None:
        """A pod is not pending any more; if it is assumed or bound, it stays a member."""
        key = self._pending.pop(uid, None)
        if key is not None:
            del self._members[key].unscheduled[uid]
            self._drop_if_empty(key)

    def forget_placed(self, pod: PodInfo) -> None:
        """A pod is on no node any more; if it was assumed, see also `see_pending`."""
        if pod.group:
            members = self._members_of(pod)
            members.assumed.pop(pod.uid, None)
            members.assigned.pop(pod.uid, None)
            self._drop_if_empty(pod.group_key)

    def validation_steps(
        self, placed: Iterable[PodInfo], assumed: Collection[str]
    ) -> Iterator[None]:
        """Recount the members that are on nodes.

        Raises:
            InvariantViolation: A group has other members than the recount.
        """
        recount: dict[str, tuple[set[str], set[str]]] = {}
        for pod in placed:
            if pod.group:
                counted = recount.setdefault(pod.group_key, (set(), set()))
                counted[pod.uid not in assumed].add(pod.uid)
        for key in recount.keys() | self._members.keys():
            members = self.members(key)
            found = (set(members.assumed), set(members.assigned))
            expected = recount.get(key, (set(), set()))
            if found != expected:
                raise InvariantViolation(f"members of pod group {key}", expected, found)
            if not members.num_all:
                raise InvariantViolation(f"pod group {key}", "some member", "none")
            if members.unscheduled.keys() & (found[0] | found[1]):
                raise InvariantViolation(f"pod group {key}", "each pod in one place", found)
        yield

    def _members_of(self, pod: PodInfo) -> GroupMembers:
        members = self._members.get(pod.group_key)
        if members is None:
            members = self._members[pod.group_key] = GroupMembers()
        return members

    def _drop_if_empty(self, key: str) -> None:
        if not self._members[key].num_all:
            del self._members[key]


def _is_outdated(old: PodGroup, new: PodGroup) -> bool:
    return old.metadata.uid == new.metadata.uid and is_older(
        new.metadata.resource_version, old.metadata.resource_version
    )
