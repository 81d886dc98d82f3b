"""Pods that wait for something to change, findable by who rejected them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from scheduler.queue.event_registrations import PluginKey
from scheduler.queue.heap import KeyedHeap
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
    def first(self) -> QueuedPod:
        """The pod that came first, who stands for all."""
        return next(iter(self.pods.values()))


class UnschedulablePods:
    """Rejected and gated pods; unschedulablePods of kube-scheduler, with an index.

    ``_by_plugin`` leads from (scheduler name, plugin) to the groups of pods which that plugin may
    release: gated pods are listed under their gating plugin alone, others under all that rejected
    them. An event therefore costs the groups concerned, not the pods that wait.
    """

    def __init__(self, max_in_unschedulable_s: float) -> None:
        self._max_in_unschedulable_s = max_in_unschedulable_s
        self._pods: dict[str, QueuedPod] = {}
        # Dicts instead of sets: pods are asked in the order they came, in every run the same.
        self._groups: dict[GroupKey, WaitingGroup] = {}
        self._by_plugin: dict[PluginKey, dict[GroupKey, WaitingGroup]] = {}
        # What a pod is listed under stands here, because its own fields change while it waits.
        self._key_of: dict[str, GroupKey] = {}
        self._gated: set[str] = set()
        self._deadlines: KeyedHeap[QueuedPod] = KeyedHeap()

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    @property
    def num_gated(self) -> int:
        """How many of the pods PreEnqueue keeps out."""
        return len(self._gated)

    def get(self, uid: str) -> QueuedPod | None:
        """The pod, if it is here."""
        return self._pods.get(uid)

    def put(self, queued: QueuedPod) -> None:
        """Add a pod, or list one that is here as what it is now and under who rejects it now."""
        uid = queued.uid
        key = _group_key(queued)
        if self._key_of.get(uid) != key:
            self._unlist(uid)
            self._list(queued, key)
        self._pods[uid] = queued
        self._set_deadline(queued)

    def remove(self, uid: str) -> QueuedPod | None:
        """Take out a pod; None if it is not here."""
        queued = self._pods.pop(uid, None)
        if queued is not None:
            self._unlist(uid)
            self._deadlines.remove(uid)
        return queued

    def remove_all(self, pods: Sequence[QueuedPod]) -> None:
        """Take out pods of one group that are here."""
        if not pods:
            return
        group = self._groups[self._key_of[pods[0].uid]]
        if len(pods) < len(group.pods):
            for queued in pods:
                self.remove(queued.uid)
            return
        for uid in group.pods:
            del self._pods[uid], self._key_of[uid]
        self._gated.difference_update(group.pods)
        self._deadlines.remove_all(group.pods)
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
        first = self._deadlines.peek()
        while first is not None and first[0][0] <= now:
            found.append(first[1])
            self._deadlines.pop()
            first = self._deadlines.peek()
        for queued in found:
            self._deadlines.push(queued.uid, (self._deadline(now),), queued)
        return found

    def next_deadline(self) -> float | None:
        """When the next pod has waited too long, in seconds; None when nobody waits."""
        first = self._deadlines.peek()
        return None if first is None else float(first[0][0])

    def problems(self) -> Iterator[str]:
        """What is inconsistent; nothing when all is well."""
        yield from self._deadlines.problems()
        recount: Counter[PluginKey] = Counter()
        for uid, queued in self._pods.items():
            key = _group_key(queued)
            group = self._groups.get(key)
            recount.update(_plugin_keys(queued))
            if key != self._key_of.get(uid) or group is None or uid not in group.pods:
                yield f"pod {queued.info.key} is not listed under the plugins that reject it"
            if queued.is_gated != (uid in self._gated):
                yield f"pod {queued.info.key} is miscounted as gated or not"
            if _may_time_out(queued) != (uid in self._deadlines):
                yield f"pod {queued.info.key} has no deadline, or one without a reason"
        if recount != self.counts_by_plugin():
            yield "the index from plugins to pods differs from a recount"
        listed = sum(len(group.pods) for group in self._groups.values())
        if not len(self._pods) == len(self._key_of) == listed or not len(self._deadlines) <= listed:
            yield "pods that left are still listed"
        if not all(group.pods for group in self._groups.values()):
            yield "groups without pods are kept"

    def _list(self, queued: QueuedPod, key: GroupKey) -> None:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = WaitingGroup(key, _plugin_keys(queued))
            for plugin in group.listed_under:
                self._by_plugin.setdefault(plugin, {})[key] = group
        group.pods[queued.uid] = queued
        self._key_of[queued.uid] = key
        if queued.is_gated:
            self._gated.add(queued.uid)

    def _unlist(self, uid: str) -> None:
        key = self._key_of.pop(uid, None)
        if key is None:
            return
        self._gated.discard(uid)
        group = self._groups[key]
        del group.pods[uid]
        if not group.pods:
            self._drop(group)

    def _drop(self, group: WaitingGroup) -> None:
        del self._groups[group.key]
        for plugin in group.listed_under:
            groups = self._by_plugin[plugin]
            del groups[group.key]
            if not groups:
                del self._by_plugin[plugin]

    def _set_deadline(self, queued: QueuedPod) -> None:
        if not _may_time_out(queued):
            self._deadlines.remove(queued.uid)
        elif queued.uid not in self._deadlines:
            self._deadlines.push(queued.uid, (self._deadline(queued.queued_at),), queued)

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
