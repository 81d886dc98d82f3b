"""Pods that wait for something to change, findable by who rejected them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from scheduler.queue.event_registrations import PluginKey
from scheduler.queue.heap import KeyedHeap
from scheduler.queue.queued_pod import QueuedPod

#: How often pods that waited too long are looked for; kube-scheduler's 30 s.
FLUSH_INTERVAL_S = 30.0


class UnschedulablePods:
    """Rejected and gated pods; unschedulablePods of kube-scheduler, with an index.

    ``_by_plugin`` leads from (scheduler name, plugin) to the pods which that plugin may release:
    a gated pod is listed under its gating plugin alone, any other under all that rejected it. An
    event therefore costs the pods concerned, not the pods that wait.
    """

    def __init__(self, max_in_unschedulable_s: float) -> None:
        self._max_in_unschedulable_s = max_in_unschedulable_s
        self._pods: dict[str, QueuedPod] = {}
        # Dicts instead of sets: pods are asked in the order they came, in every run the same.
        self._by_plugin: dict[PluginKey, dict[str, QueuedPod]] = {}
        # What a pod is listed under stands here, because its own fields change while it waits.
        self._listed_under: dict[str, tuple[PluginKey, ...]] = {}
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
        """Add a pod, or list one that is here under those who reject it now."""
        uid = queued.uid
        self._unlist(uid)
        keys = _keys(queued)
        for key in keys:
            self._by_plugin.setdefault(key, {})[uid] = queued
        self._listed_under[uid] = keys
        if queued.is_gated:
            self._gated.add(uid)
        if uid not in self._pods:
            self._pods[uid] = queued
            self._deadlines.push(uid, (self._deadline(queued.queued_at),), queued)

    def remove(self, uid: str) -> QueuedPod | None:
        """Take out a pod; None if it is not here."""
        queued = self._pods.pop(uid, None)
        if queued is not None:
            self._unlist(uid)
            self._deadlines.remove(uid)
        return queued

    def rejected_by(self, keys: Iterable[PluginKey]) -> list[QueuedPod]:
        """The pods that any of these plugins may release, each once."""
        found: dict[str, QueuedPod] = {}
        for key in keys:
            found.update(self._by_plugin.get(key, ()))
        return list(found.values())

    def counts_by_plugin(self) -> dict[PluginKey, int]:
        """How many pods each plugin holds back."""
        return {key: len(pods) for key, pods in self._by_plugin.items()}

    def overdue(self, now: float) -> list[QueuedPod]:
        """The pods that waited too long; each is named again only after waiting that long again.

        Most of them leave at once. A gated one stays, and asking it every 30 s as kube-scheduler
        does would cost the number of gated pods each time.
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
            recount.update(_keys(queued))
            if set(_keys(queued)) != set(self._listed_under.get(uid, ())) or not _keys(queued):
                yield f"pod {queued.info.key} is not listed under the plugins that reject it"
            if queued.is_gated != (uid in self._gated):
                yield f"pod {queued.info.key} is miscounted as gated or not"
            if uid not in self._deadlines:
                yield f"pod {queued.info.key} has no deadline"
        if recount != self.counts_by_plugin():
            yield "the index from plugins to pods differs from a recount"
        if not len(self._pods) == len(self._listed_under) == len(self._deadlines):
            yield "pods that left are still listed"

    def _unlist(self, uid: str) -> None:
        for key in self._listed_under.pop(uid, ()):
            pods = self._by_plugin[key]
            del pods[uid]
            if not pods:
                del self._by_plugin[key]
        self._gated.discard(uid)

    def _deadline(self, since: float) -> float:
        waited_too_long_at = since + self._max_in_unschedulable_s
        return math.ceil(waited_too_long_at / FLUSH_INTERVAL_S) * FLUSH_INTERVAL_S


def _keys(queued: QueuedPod) -> tuple[PluginKey, ...]:
    scheduler_name = queued.scheduler_name
    if queued.is_gated:
        return ((scheduler_name, queued.gating_plugin),)
    plugins = sorted(queued.unschedulable_plugins | queued.pending_plugins)
    return tuple((scheduler_name, plugin) for plugin in plugins)
