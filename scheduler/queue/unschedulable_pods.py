"""Pods that wait for something to change, findable by who rejected them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from scheduler.queue.event_registrations import PluginKey
from scheduler.queue.queued_pod import QueuedPod, Rejectors

#: How often pods that waited too long are looked for; kube-scheduler's 30 s.
FLUSH_INTERVAL_S = 30.0

#: (id of the class, who gates the pods or nobody, who rejected them).
GroupKey: TypeAlias = tuple[int, str, Rejectors]


@dataclass(slots=True, eq=False)
class WaitingGroup:
    """Pods of one class which the same plugins hold back: what helps one of them helps all.

    Attributes:
        key: What they have in common.
        listed_under: The plugins that may release the pods: the gating one, or else all.
        pods: By uid, in the order they came; at least one.
    """

    key: GroupKey
    listed_under: tuple[PluginKey, ...]
    pods: dict[str, QueuedPod] = field(default_factory=dict)

    @property
    def rejectors(self) -> Rejectors:
        """Those plugins."""
        return self.key[2]

    @property
    def is_gated(self) -> bool:
        """Whether a PreEnqueue plugin keeps the pods out."""
        return bool(self.key[1])

    @property
    def first(self) -> QueuedPod:
        """The pod that came first, who stands for all."""
        return next(iter(self.pods.values()))


class _Listed(NamedTuple):
    """A pod that is here: the group it is in, and when it has waited too long, if ever."""

    queued: QueuedPod
    key: GroupKey
    deadline: float | None


class UnschedulablePods:
    """Rejected and gated pods; unschedulablePods of kube-scheduler, with an index.

    ``_by_plugin`` leads from (scheduler name, plugin) to the groups of pods which that plugin may
    release: gated pods are listed under their gating plugin alone, others under all that rejected
    them. An event therefore costs the groups concerned, not the pods that wait.
    """

    def __init__(self, max_in_unschedulable_s: float) -> None:
        self._max_in_unschedulable_s = max_in_unschedulable_s
        # What a pod is listed under stands here, because its own fields change while it waits.
        self._listed: dict[str, _Listed] = {}
        # Dicts instead of sets: pods are asked in the order they came, in every run the same.
        self._groups: dict[GroupKey, WaitingGroup] = {}
        self._by_plugin: dict[PluginKey, dict[GroupKey, WaitingGroup]] = {}
        self._gated: set[str] = set()
        # Deadlines are half minutes, so there are never many.
        self._due: dict[float, dict[str, QueuedPod]] = {}

    def __len__(self) -> int:
        return len(self._listed)

    def __contains__(self, uid: str) -> bool:
        return uid in self._listed

    def __iter__(self) -> Iterator[QueuedPod]:
        return (listed.queued for listed in self._listed.values())

    @property
    def num_gated(self) -> int:
        """How many of the pods PreEnqueue keeps out."""
        return len(self._gated)

    def get(self, uid: str) -> QueuedPod | None:
        """The pod, if it is here."""
        listed = self._listed.get(uid)
        return None if listed is None else listed.queued

    def put(self, queued: QueuedPod) -> None:
        """Add a pod, or list one that is here as what it is now and under who rejects it now."""
        key = _group_key(queued)
        listed = self._listed.get(queued.uid)
        if listed is None:
            self._list(queued, key, self._deadline(queued.queued_at))
        elif listed.key != key:
            self.remove(queued.uid)
            deadline = listed.deadline or self._deadline(queued.queued_at)
            self._list(queued, key, deadline)

    def remove(self, uid: str) -> QueuedPod | None:
        """Take out a pod; None if it is not here."""
        listed = self._listed.pop(uid, None)
        if listed is None:
            return None
        self._gated.discard(uid)
        self._forget_deadline(uid, listed.deadline)
        group = self._groups[listed.key]
        del group.pods[uid]
        if not group.pods:
            self._drop(group)
        return listed.queued

    def remove_all(self, pods: Sequence[QueuedPod]) -> None:
        """Take out pods of one group that are here."""
        if not pods:
            return
        group = self._groups[self._listed[pods[0].uid].key]
        if len(pods) < len(group.pods):
            for queued in pods:
                self.remove(queued.uid)
            return
        listed, due = self._listed, self._due
        for uid in group.pods:
            deadline = listed.pop(uid).deadline
            if deadline is not None:
                del due[deadline][uid]
                if not due[deadline]:
                    del due[deadline]
        if group.is_gated:
            self._gated.difference_update(group.pods)
        self._drop(group)

    def groups(self) -> list[WaitingGroup]:
        """All pods, as groups."""
        return list(self._groups.values())

    def groups_rejected_by(self, keys: Iterable[PluginKey]) -> list[WaitingGroup]:
        """The groups that any of these plugins may release, each once."""
        found: dict[GroupKey, WaitingGroup] = {}
        for key in keys:
            found.update(self._by_plugin.get(key, ()))
        return list(found.values())

    def counts_by_plugin(self) -> dict[PluginKey, int]:
        """How many pods each plugin holds back."""
        return {
            key: sum(len(group.pods) for group in groups.values())
            for key, groups in self._by_plugin.items()
        }

    def overdue(self, now: float) -> list[QueuedPod]:
        """The pods that waited too long; one that stays is named again after waiting so long again.

        kube-scheduler looks every 30 s, at all pods. A pod that stays is one that is gated anew.
        """
        found: list[QueuedPod] = []
        if not self._due:
            return found
        for deadline in sorted(each for each in self._due if each <= now):
            found += self._due.pop(deadline).values()
        if not found:
            return found
        again = self._deadline(now)
        for queued in found:
            self._listed[queued.uid] = self._listed[queued.uid]._replace(deadline=again)
            self._due.setdefault(again, {})[queued.uid] = queued
        return found

    def next_deadline(self) -> float | None:
        """When the next pod has waited too long, in seconds; None when nobody waits."""
        return min(self._due, default=None)

    def problems(self) -> Iterator[str]:
        """What is inconsistent; nothing when all is well."""
        recount: Counter[PluginKey] = Counter()
        for uid, listed in self._listed.items():
            queued, group = listed.queued, self._groups.get(listed.key)
            recount.update(_plugin_keys(queued))
            if listed.key != _group_key(queued) or group is None or uid not in group.pods:
                yield f"pod {queued.info.key} is not listed under the plugins that reject it"
            if queued.is_gated != (uid in self._gated):
                yield f"pod {queued.info.key} is miscounted as gated or not"
            if _may_time_out(queued) != (uid in self._due.get(listed.deadline or -1.0, ())):
                yield f"pod {queued.info.key} has no deadline, or one without a reason"
        if recount != self.counts_by_plugin():
            yield "the index from plugins to pods differs from a recount"
        num_listed = sum(len(group.pods) for group in self._groups.values())
        num_due = sum(map(len, self._due.values()))
        if len(self._listed) != num_listed or num_due > num_listed:
            yield "pods that left are still listed"
        if not all(group.pods for group in self._groups.values()) or not all(self._due.values()):
            yield "groups or deadlines without pods are kept"

    def _list(self, queued: QueuedPod, key: GroupKey, deadline: float) -> None:
        uid = queued.uid
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = WaitingGroup(key, _plugin_keys(queued))
            for plugin in group.listed_under:
                self._by_plugin.setdefault(plugin, {})[key] = group
        group.pods[uid] = queued
        if group.is_gated:
            self._gated.add(uid)
        if _may_time_out(queued):
            self._due.setdefault(deadline, {})[uid] = queued
            self._listed[uid] = _Listed(queued, key, deadline)
        else:
            self._listed[uid] = _Listed(queued, key, None)

    def _forget_deadline(self, uid: str, deadline: float | None) -> None:
        if deadline is not None:
            due = self._due[deadline]
            del due[uid]
            if not due:
                del self._due[deadline]

    def _drop(self, group: WaitingGroup) -> None:
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
    return queued.info.pod_class.id, queued.gating_plugin, queued.rejectors


def _plugin_keys(queued: QueuedPod) -> tuple[PluginKey, ...]:
    scheduler_name = queued.scheduler_name
    if queued.is_gated:
        return ((scheduler_name, queued.gating_plugin),)
    plugins = sorted(queued.unschedulable_plugins | queued.pending_plugins)
    return tuple((scheduler_name, plugin) for plugin in plugins)


def _may_time_out(queued: QueuedPod) -> bool:
    """Whether five minutes change anything: a gated pod waits for its gating plugin's events."""
    return not queued.is_gated or any(event.is_wildcard for event in queued.gating_events)
