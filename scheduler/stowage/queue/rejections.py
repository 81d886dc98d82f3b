"""Counts of waiting pods by the plugin that rejected them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from stowage.queue.event_registrations import PluginKey
from stowage.queue.queued_pod import QueuedPod


class RejectionCounts:
    """How many waiting pods each plugin rejected in their last attempts, or gates.

    ``scheduler_unschedulable_pods`` of v1.36: a pod counts from its rejection until it is popped
    or deleted, in whichever sub-queue it waits.
    """

    def __init__(self) -> None:
        self._counts: Counter[PluginKey] = Counter()

    def totals(self) -> dict[PluginKey, int]:
        """By (scheduler name, plugin); 0 for a plugin that rejected pods before."""
        return dict(self._counts)

    def add(self, queued: QueuedPod) -> None:
        """Count a pod that starts to wait under the plugins that rejected it, if any."""
        name = queued.scheduler_name
        for plugin in queued.unschedulable_plugins | queued.pending_plugins:
            self._counts[name, plugin] += 1

    def add_gate(self, queued: QueuedPod, plugin: str) -> None:
        """Count a waiting pod under a plugin that is about to gate it, unless it counts already."""
        if plugin not in queued.unschedulable_plugins and plugin not in queued.pending_plugins:
            self._counts[queued.scheduler_name, plugin] += 1

    def remove(self, queued: QueuedPod) -> None:
        """Stop counting a pod that is popped or deleted."""
        if queued.unschedulable_plugins or queued.pending_plugins:
            name = queued.scheduler_name
            for plugin in queued.unschedulable_plugins | queued.pending_plugins:
                self._counts[name, plugin] -= 1

    def inconsistencies(self, waiting: Iterable[QueuedPod]) -> Iterator[str]:
        """Violated invariants, as text."""
        recount = RejectionCounts()
        for queued in waiting:
            recount.add(queued)
        counted = {key: count for key, count in self._counts.items() if count}
        if recount.totals() != counted:
            yield f"{counted} pods rejected by plugin, recounted as {recount.totals()}"
