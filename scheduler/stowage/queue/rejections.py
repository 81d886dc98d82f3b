"""Whom plugins reject: counted as attempts end, so that nobody has to count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from stowage.queue.event_registrations import PluginKey
from stowage.queue.queued_pod import QueuedPod


class RejectionCounts:
    """How many waiting pods each plugin rejected in their last attempts, or gates.

    ``scheduler_unschedulable_pods`` of v1.36: a pod counts from its rejection until it is popped
    or deleted, in whichever queue it waits.
    """

    def __init__(self) -> None:
        self._counts: Counter[PluginKey] = Counter()

    def totals(self) -> dict[PluginKey, int]:
        """By (scheduler name, plugin); who rejects nobody is not named."""
        return {key: count for key, count in self._counts.items() if count}

    def note(self, queued: QueuedPod) -> None:
        """A pod waits that was rejected, if it was."""
        name = queued.scheduler_name
        for plugin in queued.unschedulable_plugins | queued.pending_plugins:
            self._counts[name, plugin] += 1

    def note_gate(self, queued: QueuedPod, plugin: str) -> None:
        """A plugin is about to gate a waiting pod, which it may have done before."""
        if plugin not in queued.unschedulable_plugins and plugin not in queued.pending_plugins:
            self._counts[queued.scheduler_name, plugin] += 1

    def forget(self, queued: QueuedPod) -> None:
        """A pod waits no longer, or no longer because of a rejection."""
        if queued.unschedulable_plugins or queued.pending_plugins:
            name = queued.scheduler_name
            for plugin in queued.unschedulable_plugins | queued.pending_plugins:
                self._counts[name, plugin] -= 1

    def inconsistencies(self, waiting: Iterable[QueuedPod]) -> Iterator[str]:
        """What is inconsistent; nothing when all is well."""
        recount = RejectionCounts()
        for queued in waiting:
            recount.note(queued)
        if recount.totals() != self.totals():
            yield f"{self.totals()} pods rejected by plugin, recounted as {recount.totals()}"
