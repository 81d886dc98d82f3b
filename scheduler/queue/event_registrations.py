"""Which plugin waits for which events, and what it says of one that happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from scheduler.api.events import ActionType, ClusterEvent, EventResource, QueueingHint
from scheduler.queue.hint_durations import HintDurations
from scheduler.queue.queue_events import event_label
from scheduler.queue.queued_pod import QueuedPod, Rejectors
from scheduler.state.pod_info import PodInfo

#: (pod, old object or None, new object or None) -> opinion.
Hint: TypeAlias = Callable[[PodInfo, Any, Any], QueueingHint]
#: (scheduler name, plugin name).
PluginKey: TypeAlias = tuple[str, str]


class Registration(NamedTuple):
    """An event a plugin waits for; without a hint every one of them helps.

    Attributes:
        per_class: The hint gives the pods of one class one answer.
    """

    event: ClusterEvent
    hint: Hint | None = None
    per_class: bool = False


#: Per plugin of a profile what it registered.
Registrations: TypeAlias = Mapping[
    PluginKey, Sequence[Registration | tuple[ClusterEvent, Hint | None]]
]

_EVERYTHING = (Registration(ClusterEvent(EventResource.WILDCARD, ActionType.ALL)),)

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


@dataclass(frozen=True, slots=True)
class Concerned:
    """What a plugin that waits for a kind of event has to say to it.

    Attributes:
        hints: Its hints; None always helps.
        per_class: Whether each of them gives the pods of one class one answer.
    """

    hints: tuple[Hint | None, ...]
    per_class: bool


class EventRegistrations:
    """Answers who is concerned by an event, and whether a pod is worth another attempt.

    A plugin without registrations waits for every event, as one that does not implement
    EnqueueExtensions does in kube-scheduler. Answers are remembered per kind of event, so an
    event costs the plugins concerned, not the plugins configured.

    Args:
        problems: Takes what went wrong in hints.
        durations: Told how long hints took.
    """

    def __init__(
        self,
        registrations: Registrations,
        problems: list[str],
        durations: HintDurations | None = None,
    ) -> None:
        self._registered = {
            key: tuple(Registration(*each) for each in events)
            for key, events in registrations.items()
        }
        self._problems = problems
        self._durations = durations or HintDurations()
        self._concerned: dict[tuple[EventResource, ActionType], dict[PluginKey, Concerned]] = {}

    def events_of(self, key: PluginKey) -> tuple[ClusterEvent, ...]:
        """The events a plugin registered; an unknown plugin is noted as waiting for all."""
        if key not in self._registered:
            self._registered[key] = _EVERYTHING
            self._concerned.clear()
        return tuple(each.event for each in self._registered[key])

    def note_rejection(self, scheduler_name: str, plugins: Iterable[str]) -> None:
        """Make sure that these plugins are known before a pod is indexed under them."""
        for plugin in plugins:
            if (scheduler_name, plugin) not in self._registered:
                self.events_of((scheduler_name, plugin))

    def concerned_by(self, event: ClusterEvent) -> dict[PluginKey, Concerned]:
        """The plugins that registered for such an event, each with its hints."""
        kind = (event.resource, event.action)
        known = self._concerned.get(kind)
        if known is None:
            known = self._find_concerned(event)
            if len(self._concerned) >= _MAX_REMEMBERED_KINDS:
                self._concerned.clear()
            self._concerned[kind] = known
        return known

    def _find_concerned(self, event: ClusterEvent) -> dict[PluginKey, Concerned]:
        found = {}
        for key, registered in self._registered.items():
            matching = [each for each in registered if each.event.matches(event)]
            if matching:
                found[key] = Concerned(
                    tuple(each.hint for each in matching),
                    all(each.hint is None or each.per_class for each in matching),
                )
        return found

    def judges_per_class(self, rejectors: Rejectors, happened: Happened) -> bool:
        """Whether `judge` says the same of all pods of one class that these plugins rejected."""
        if happened.event.is_wildcard:
            return happened.new is None
        concerned = self.concerned_by(happened.event)
        scheduler_name, unschedulable, pending = rejectors
        for plugin in (*unschedulable, *pending):
            found = concerned.get((scheduler_name, plugin))
            if found is not None and not found.per_class:
                return False
        return True

    def judge(self, queued: QueuedPod, happened: Happened) -> Requeue:
        """Whether the event may help the pod; ``isPodWorthRequeuing`` of v1.36.

        Only plugins that rejected the pod are asked. Queue from one that answered Pending lets
        the pod skip its backoff.
        """
        if not queued.was_rejected:
            return Requeue.AFTER_BACKOFF
        if happened.event.is_wildcard:
            return _judge_wildcard(queued, happened)
        return self.judge_as(queued.rejectors, queued.info, happened)

    def judge_as(self, rejectors: Rejectors, info: PodInfo, happened: Happened) -> Requeue:
        """`judge` for a pod that these plugins rejected, of an event that is no wildcard."""
        concerned = self.concerned_by(happened.event)
        scheduler_name, unschedulable, pending = rejectors
        for plugin in pending:
            found = concerned.get((scheduler_name, plugin))
            if found is not None and self._any_says_queue(found, plugin, info, happened):
                return Requeue.IMMEDIATELY
        for plugin in unschedulable:
            found = concerned.get((scheduler_name, plugin))
            if found is not None and self._any_says_queue(found, plugin, info, happened):
                return Requeue.AFTER_BACKOFF
        return Requeue.SKIP

    def _any_says_queue(
        self, concerned: Concerned, plugin: str, info: PodInfo, happened: Happened
    ) -> bool:
        for hint in concerned.hints:
            if hint is None or self._ask(hint, plugin, info, happened):
                return True
        return False

    def _ask(self, hint: Hint, plugin: str, info: PodInfo, happened: Happened) -> bool:
        started = self._durations.now()
        try:
            said = hint(info, happened.old, happened.new)
        except Exception as error:
            # A pod must not be stuck because a plugin is broken: a failed hint counts as Queue.
            self._durations.observe(plugin, happened.event, None, started)
            self._problems.append(
                f"pod {info.key}: the queueing hint of plugin {plugin} failed for event "
                f"{event_label(happened.event)}: {error!r}; expected QUEUE or SKIP, took QUEUE"
            )
            return True
        self._durations.observe(plugin, happened.event, said, started)
        return said is QueueingHint.QUEUE


def _judge_wildcard(queued: QueuedPod, happened: Happened) -> Requeue:
    # A wildcard event about a pod, such as a forced activation, is meant for that pod alone.
    if isinstance(happened.new, PodInfo) and happened.new.uid != queued.uid:
        return Requeue.SKIP
    return Requeue.AFTER_BACKOFF
