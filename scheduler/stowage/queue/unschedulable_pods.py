"""Unschedulable and gated pods, indexed by the plugins that rejected them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from stowage.api.interruptible import Interruptible
from stowage.queue.event_registrations import PluginKey
from stowage.queue.queued_pod import QueuedPod, RejectorPlugins

#: Pods time out at multiples of this; ``flushUnschedulablePodsLeftover`` runs every 30 s.
FLUSH_INTERVAL_S = 30.0

# Few plugins reject a pod together; the bound only guards against unusual profiles.
_MANY_REJECTORS = 256

#: (id of the class, gating plugin or empty, plugins that rejected the pods).
GroupKey: TypeAlias = tuple[int, str, RejectorPlugins]


class UnschedulableGroup(msgspec.Struct, eq=False):
    """Pods of one class that the same plugins rejected: an event that helps one helps all.

    Attributes:
        key: What the pods have in common.
        rejector_plugins: The plugins; the same object for all groups of the same plugins.
        is_gated: Whether a PreEnqueue plugin rejects the pods.
        listed_under: The plugins whose events may move the pods: the gating one, or else all.
        one: One of the pods; hints run for it instead of for all.
        pods: The pods by UID, in the order in which they were added; at least one.
        due: The pods by the time at which they time out; without those that never do.
    """

    key: GroupKey
    rejector_plugins: RejectorPlugins
    is_gated: bool
    listed_under: tuple[PluginKey, ...]
    one: QueuedPod
    pods: dict[str, QueuedPod] = msgspec.field(default_factory=dict)
    due: dict[float, dict[str, QueuedPod]] = msgspec.field(default_factory=dict)

    def deadline_of(self, uid: str) -> float | None:
        """When one of the pods times out; None if it never does."""
        return next((deadline for deadline, pods in self.due.items() if uid in pods), None)


class UnschedulablePods:
    """Rejected and gated pods; ``unschedulablePods`` of kube-scheduler, with an index.

    ``_by_plugin`` maps (scheduler name, plugin) to the groups of pods that an event of the plugin
    may move: gated pods are listed under their gating plugin only, other pods under all plugins
    that rejected them. So an event costs time in proportion to the listed groups, not to all pods.
    """

    def __init__(self, max_in_unschedulable_s: float) -> None:
        self._max_in_unschedulable_s = max_in_unschedulable_s
        # The group records what a pod is listed under: the pod's own fields change while it waits.
        self._listed: dict[str, UnschedulableGroup] = {}
        # Dicts instead of sets: the order of the groups is the same in every run.
        self._groups: dict[GroupKey, UnschedulableGroup] = {}
        self._by_plugin: dict[PluginKey, dict[GroupKey, UnschedulableGroup]] = {}
        self._rejectors: dict[RejectorPlugins, RejectorPlugins] = {}
        self._gated: set[str] = set()
        # Deadlines are half minutes, so there are few. A group is listed once per deadline, not
        # once per pod, so that removing a group is cheap.
        self._due: dict[float, dict[GroupKey, UnschedulableGroup]] = {}

    def __len__(self) -> int:
        return len(self._listed)

    def __contains__(self, uid: str) -> bool:
        return uid in self._listed

    def __iter__(self) -> Iterator[QueuedPod]:
        return (group.pods[uid] for uid, group in self._listed.items())

    @property
    def num_gated(self) -> int:
        """How many of the pods are gated."""
        return len(self._gated)

    def get(self, uid: str) -> QueuedPod | None:
        """The pod, if it is unschedulable or gated."""
        group = self._listed.get(uid)
        return None if group is None else group.pods[uid]

    def put(self, queued: QueuedPod) -> None:
        """Add a pod, or list a present one under its new class and rejecting plugins."""
        key = _group_key(queued)
        group = self._listed.get(queued.uid)
        if group is None:
            self._list(queued, key, self._deadline(queued.queued_at))
        elif group.key != key:
            deadline = group.deadline_of(queued.uid) or self._deadline(queued.queued_at)
            self.remove(queued.uid)
            self._list(queued, key, deadline)

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod; None if it is not present."""
        group = self._listed.pop(uid, None)
        if group is None:
            return None
        self._gated.discard(uid)
        deadline = group.deadline_of(uid)
        if deadline is not None:
            del group.due[deadline][uid]
            if not group.due[deadline]:
                del group.due[deadline]
                self._forget_deadline(group, deadline)
        queued = group.pods.pop(uid)
        if not group.pods:
            self._drop(group)
        elif group.one is queued:
            # The last: a dict is slow to find its first item after thousands before it have left.
            group.one = next(reversed(group.pods.values()))
        return queued

    def remove_all(self, pods: Sequence[QueuedPod]) -> None:
        """Remove pods that belong to one group."""
        if not pods:
            return
        group = self._listed[pods[0].uid]
        if len(pods) < len(group.pods):
            for queued in pods:
                self.remove(queued.uid)
            return
        listed = self._listed
        for uid in group.pods:
            del listed[uid]
        for deadline in group.due:
            self._forget_deadline(group, deadline)
        if group.is_gated:
            self._gated.difference_update(group.pods)
        self._drop(group)

    def groups(self) -> list[UnschedulableGroup]:
        """All groups."""
        return list(self._groups.values())

    def groups_rejected_by(self, keys: Iterable[PluginKey]) -> list[UnschedulableGroup]:
        """The groups that events of these plugins may move, each once."""
        listed = [self._by_plugin[key] for key in keys if key in self._by_plugin]
        if len(listed) == 1:
            return list(listed[0].values())
        found: dict[GroupKey, UnschedulableGroup] = {}
        for groups in listed:
            found.update(groups)
        return list(found.values())

    def counts_by_plugin(self) -> dict[PluginKey, int]:
        """How many pods are listed under each plugin."""
        return {
            key: sum(len(group.pods) for group in groups.values())
            for key, groups in self._by_plugin.items()
        }

    def overdue(self, now: float) -> Interruptible[list[QueuedPod]]:
        """The pods that timed out; a pod that stays, being gated again, gets a new deadline.

        kube-scheduler scans all pods every 30 s.
        """
        found: list[QueuedPod] = []
        if not self._due:
            return found
        again = self._deadline(now)
        for deadline in sorted(each for each in self._due if each <= now):
            for group in self._due.pop(deadline).values():
                overdue = group.due.pop(deadline)
                found += overdue.values()
                for queued in overdue.values():
                    self._set_due(group, again, queued)
                yield
        found.sort(key=lambda queued: queued.queued_at)
        return found

    def next_deadline(self) -> float | None:
        """When the next pod times out, in seconds; None if no pod does."""
        return min(self._due, default=None)

    def inconsistencies(self) -> Iterator[str]:
        """Violated invariants, as text."""
        recount: Counter[PluginKey] = Counter()
        for uid, group in self._listed.items():
            queued = group.pods.get(uid)
            if queued is None:
                yield f"pod {uid} is not in its group"
                continue
            recount.update(_plugin_keys(queued))
            if group.key != _group_key(queued) or self._groups.get(group.key) is not group:
                yield f"pod {queued.info.key} is not listed under the plugins that reject it"
            if queued.is_gated != (uid in self._gated):
                yield f"pod {queued.info.key} is miscounted as gated or not"
            due_at = group.deadline_of(uid)
            is_due = due_at is not None and group.key in self._due.get(due_at, ())
            if _may_time_out(queued) != is_due:
                yield f"pod {queued.info.key} has no deadline, or one without a reason"
        if recount != self.counts_by_plugin():
            yield "the index from plugins to pods differs from a recount"
        yield from self._group_problems()

    def _group_problems(self) -> Iterator[str]:
        num_listed = sum(len(group.pods) for group in self._groups.values())
        due = [pods for group in self._groups.values() for pods in group.due.values()]
        if len(self._listed) != num_listed or sum(map(len, due)) > num_listed:
            yield "pods that left are still listed"
        groups_due = sum(map(len, self._due.values()))
        if not all(due) or not all(self._due.values()) or groups_due != len(due):
            yield "deadlines without pods are kept"
        for group in self._groups.values():
            if group.pods.get(group.one.uid) is not group.one:
                yield f"pod {group.one.info.key} left, but stands for its group"

    def _list(self, queued: QueuedPod, key: GroupKey, deadline: float) -> None:
        uid = queued.uid
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = self._new_group(key, queued)
            for plugin in group.listed_under:
                self._by_plugin.setdefault(plugin, {})[key] = group
        group.pods[uid] = queued
        if group.is_gated:
            self._gated.add(uid)
        if _may_time_out(queued):
            self._set_due(group, deadline, queued)
        self._listed[uid] = group

    def _new_group(self, key: GroupKey, queued: QueuedPod) -> UnschedulableGroup:
        if len(self._rejectors) > len(self._groups) + _MANY_REJECTORS:
            self._rejectors = {
                each.rejector_plugins: each.rejector_plugins for each in self._groups.values()
            }
        rejector_plugins = self._rejectors.setdefault(key[2], key[2])
        return UnschedulableGroup(key, rejector_plugins, bool(key[1]), _plugin_keys(queued), queued)

    def _set_due(self, group: UnschedulableGroup, deadline: float, queued: QueuedPod) -> None:
        due = group.due.get(deadline)
        if due is None:
            due = group.due[deadline] = {}
            self._due.setdefault(deadline, {})[group.key] = group
        due[queued.uid] = queued

    def _forget_deadline(self, group: UnschedulableGroup, deadline: float) -> None:
        groups = self._due[deadline]
        del groups[group.key]
        if not groups:
            del self._due[deadline]

    def _drop(self, group: UnschedulableGroup) -> None:
        del self._groups[group.key]
        for plugin in group.listed_under:
            groups = self._by_plugin[plugin]
            del groups[group.key]
            if not groups:
                del self._by_plugin[plugin]

    def _deadline(self, since: float) -> float:
        waited_too_long_at = since + self._max_in_unschedulable_s
        return math.ceil(waited_too_long_at / FLUSH_INTERVAL_S) * FLUSH_INTERVAL_S


def _group_key(queued: QueuedPod) -> GroupKey:
    return queued.info.pod_class.id, queued.gating_plugin, queued.rejector_plugins


def _plugin_keys(queued: QueuedPod) -> tuple[PluginKey, ...]:
    scheduler_name = queued.scheduler_name
    if queued.is_gated:
        return ((scheduler_name, queued.gating_plugin),)
    plugins = sorted(queued.unschedulable_plugins | queued.pending_plugins)
    return tuple((scheduler_name, plugin) for plugin in plugins)


def _may_time_out(queued: QueuedPod) -> bool:
    """Whether the timeout may move the pod: a gated pod needs an event of its gating plugin."""
    return not queued.is_gated or any(event.is_wildcard for event in queued.gating_events)
