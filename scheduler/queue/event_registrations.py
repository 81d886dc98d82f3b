"""Which plugin waits for which events, and what it says of one that happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from scheduler.api.events import ActionType, ClusterEvent, EventResource, QueueingHint
from scheduler.queue.queue_events import event_label, is_wildcard
from scheduler.queue.queued_pod import QueuedPod
from scheduler.state.pod_info import PodInfo

#: (pod, old object or None, new object or None) -> opinion.
Hint: TypeAlias = Callable[[PodInfo, Any, Any], QueueingHint]
#: (scheduler name, plugin name).
PluginKey: TypeAlias = tuple[str, str]
#: Per plugin of a profile the events it registered; no hint means every one of them helps.
Registrations: TypeAlias = Mapping[PluginKey, Sequence[tuple[ClusterEvent, Hint | None]]]

_EVERYTHING = ((ClusterEvent(EventResource.WILDCARD, ActionType.ALL), None),)

# Events come in a few dozen kinds; the bound only guards against odd unions of actions.
_MAX_REMEMBERED_KINDS = 4096


class Requeue(Enum):
    """What shall become of a pod after an event; ``queueingStrategy`` of v1.36."""

    SKIP = "skip"
    AFTER_BACKOFF = "afterBackoff"
    IMMEDIATELY = "immediately"


@dataclass(frozen=True, slots=True)
class Happened:
    """An event together with the object it is about, before and after."""

    event: ClusterEvent
    old: Any = None
    new: Any = None


class EventRegistrations:
    """Answers who is concerned by an event, and whether a pod is worth another attempt.

    A plugin without registrations waits for every event, as one that does not implement
    EnqueueExtensions does in kube-scheduler. Answers are remembered per kind of event, so an
    event costs the plugins concerned, not the plugins configured.
    """

    def __init__(self, registrations: Registrations, problems: list[str]) -> None:
        self._registered = {key: tuple(events) for key, events in registrations.items()}
        self._problems = problems
        self._concerned: dict[
            tuple[EventResource, ActionType], dict[PluginKey, tuple[Hint | None, ...]]
        ] = {}

    def events_of(self, key: PluginKey) -> tuple[ClusterEvent, ...]:
        """The events a plugin registered; an unknown plugin is noted as waiting for all."""
        if key not in self._registered:
            self._registered[key] = _EVERYTHING
            self._concerned.clear()
        return tuple(event for event, _ in self._registered[key])

    def note_rejection(self, scheduler_name: str, plugins: Iterable[str]) -> None:
        """Make sure that these plugins are known before a pod is indexed under them."""
        for plugin in plugins:
            if (scheduler_name, plugin) not in self._registered:
                self.events_of((scheduler_name, plugin))

    def concerned_by(self, event: ClusterEvent) -> dict[PluginKey, tuple[Hint | None, ...]]:
        """The plugins that registered for such an event, each with its hints."""
        kind = (event.resource, event.action)
        known = self._concerned.get(kind)
        if known is None:
            known = self._find_concerned(event)
            if len(self._concerned) >= _MAX_REMEMBERED_KINDS:
                self._concerned.clear()
            self._concerned[kind] = known
        return known

    def _find_concerned(self, event: ClusterEvent) -> dict[PluginKey, tuple[Hint | None, ...]]:
        found = {
            key: tuple(hint for wanted, hint in events if wanted.matches(event))
            for key, events in self._registered.items()
        }
        return {key: hints for key, hints in found.items() if hints}

    def judge(self, queued: QueuedPod, happened: Happened) -> Requeue:
        """Whether the event may help the pod; ``isPodWorthRequeuing`` of v1.36.

        Only plugins that rejected the pod are asked. Queue from one that answered Pending lets
        the pod skip its backoff.
        """
        if not queued.was_rejected:
            return Requeue.AFTER_BACKOFF
        if is_wildcard(happened.event):
            return _judge_wildcard(queued, happened)
        concerned = self.concerned_by(happened.event)
        scheduler_name = queued.scheduler_name
        for plugin in sorted(queued.pending_plugins):
            if self._says_queue(concerned, (scheduler_name, plugin), queued, happened):
                return Requeue.IMMEDIATELY
        for plugin in sorted(queued.unschedulable_plugins):
            if self._says_queue(concerned, (scheduler_name, plugin), queued, happened):
                return Requeue.AFTER_BACKOFF
        return Requeue.SKIP

    def _says_queue(
        self,
        concerned: dict[PluginKey, tuple[Hint | None, ...]],
        key: PluginKey,
        queued: QueuedPod,
        happened: Happened,
    ) -> bool:
        return any(
            hint is None or self._ask(hint, key[1], queued, happened)
            for hint in concerned.get(key, ())
        )

    def _ask(self, hint: Hint, plugin: str, queued: QueuedPod, happened: Happened) -> bool:
        try:
            return hint(queued.info, happened.old, happened.new) is QueueingHint.QUEUE
        except Exception as error:
            # A pod must not be stuck because a plugin is broken: a failed hint counts as Queue.
            self._problems.append(
                f"pod {queued.info.key}: the queueing hint of plugin {plugin} failed for event "
                f"{event_label(happened.event)}: {error!r}; expected QUEUE or SKIP, took QUEUE"
            )
            return True


def _judge_wildcard(queued: QueuedPod, happened: Happened) -> Requeue:
    # A wildcard event about a pod, such as a forced activation, is meant for that pod alone.
    if isinstance(happened.new, PodInfo) and happened.new.uid != queued.uid:
        return Requeue.SKIP
    return Requeue.AFTER_BACKOFF
