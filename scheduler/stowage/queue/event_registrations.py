"""Which plugin waits for which events, and what it says of one that happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

import msgspec

from stowage.api.events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.queue.hint_durations import HintDurations
from stowage.queue.queue_events import event_label
from stowage.queue.queued_pod import QueuedPod, RejectorPlugins
from stowage.state.pods.pod_info import PodInfo

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

_Kind: TypeAlias = tuple[EventResource, ActionType]

# Events come in a few dozen kinds, and few plugins reject a pod together; the bound only guards
# against odd unions of actions.
_MAX_REMEMBERED = 4096


class Requeue(Enum):
    """What shall become of a pod after an event; ``queueingStrategy`` of v1.36."""

    SKIP = "skip"
    AFTER_BACKOFF = "afterBackoff"
    IMMEDIATELY = "immediately"


class ObjectEvent(msgspec.Struct, frozen=True):
    """An event together with the object it is about, before and after."""

    event: ClusterEvent
    old: Any = None
    new: Any = None

    @property
    def pod_uid(self) -> str:
        """The UID of the pod it is about; empty if it is about none that is left."""
        return self.new.uid if isinstance(self.new, PodInfo) else ""


class HintFunction(NamedTuple):
    """Something to ask about a pod, and what becomes of the pod if the answer is Queue.

    Attributes:
        plugin: Whom to ask.
        hint: What to ask; None is answered with Queue.
        strategy: AFTER_BACKOFF, or IMMEDIATELY if the plugin had answered Pending.
    """

    plugin: str
    hint: Hint | None
    strategy: Requeue


class HintFunctions(msgspec.Struct, frozen=True):
    """What to ask about pods that certain plugins rejected when a kind of event happens.

    Attributes:
        all: In the order in which they are asked; the first Queue decides.
        per_class: Whether the answers are the same for all pods of a class.
    """

    all: tuple[HintFunction, ...]
    per_class: bool


NO_HINT_FUNCTIONS = HintFunctions((), per_class=True)


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
        self._concerned: dict[_Kind, dict[PluginKey, tuple[Registration, ...]]] = {}
        self._questions: dict[_Kind, dict[RejectorPlugins, HintFunctions]] = {}

    def events_of(self, key: PluginKey) -> tuple[ClusterEvent, ...]:
        """The events a plugin registered; an unknown plugin is noted as waiting for all."""
        if key not in self._registered:
            self._registered[key] = _EVERYTHING
            self._concerned.clear()
            self._questions.clear()
        return tuple(each.event for each in self._registered[key])

    def note_rejection(self, scheduler_name: str, plugins: Iterable[str]) -> None:
        """Make sure that these plugins are known before a pod is indexed under them.

        Whom nobody in particular rejected only wildcard events bring back, as in kube-scheduler.
        """
        for plugin in plugins:
            if plugin and (scheduler_name, plugin) not in self._registered:
                self.events_of((scheduler_name, plugin))

    def concerned_by(self, event: ClusterEvent) -> dict[PluginKey, tuple[Registration, ...]]:
        """The plugins that registered for such an event, each with the registrations met."""
        kind = (event.resource, event.action)
        known = self._concerned.get(kind)
        if known is None:
            known = self._find_concerned(event)
            if len(self._concerned) >= _MAX_REMEMBERED:
                self._concerned.clear()
            self._concerned[kind] = known
        return known

    def _find_concerned(self, event: ClusterEvent) -> dict[PluginKey, tuple[Registration, ...]]:
        found = {
            key: tuple(each for each in registered if each.event.matches(event))
            for key, registered in self._registered.items()
        }
        return {key: met for key, met in found.items() if met}

    def questions(self, rejector_plugins: RejectorPlugins, event: ClusterEvent) -> HintFunctions:
        """What to ask about pods that these plugins rejected when this, no wildcard, happens.

        Only plugins that rejected the pod are asked, those that answered Pending first: they let
        the pod skip its backoff.
        """
        kind = (event.resource, event.action)
        remembered = self._questions.get(kind)
        if remembered is None:
            if len(self._questions) >= _MAX_REMEMBERED:
                self._questions.clear()
            remembered = self._questions[kind] = {}
        known = remembered.get(rejector_plugins)
        if known is None:
            if len(remembered) >= _MAX_REMEMBERED:
                remembered.clear()
            known = remembered[rejector_plugins] = self._find_questions(rejector_plugins, event)
        return known

    def _find_questions(
        self, rejector_plugins: RejectorPlugins, event: ClusterEvent
    ) -> HintFunctions:
        concerned = self.concerned_by(event)
        found: list[HintFunction] = []
        per_class = True
        for plugins, strategy in (
            (rejector_plugins.pending, Requeue.IMMEDIATELY),
            (rejector_plugins.unschedulable, Requeue.AFTER_BACKOFF),
        ):
            for plugin in plugins:
                for met in concerned.get((rejector_plugins.scheduler_name, plugin), ()):
                    found.append(HintFunction(plugin, met.hint, strategy))
                    per_class = per_class and (met.hint is None or met.per_class)
        return HintFunctions(tuple(found), per_class)

    def judge(self, queued: QueuedPod, happened: ObjectEvent) -> Requeue:
        """Whether the event may help the pod; ``isPodWorthRequeuing`` of v1.36."""
        if not queued.was_rejected:
            return Requeue.AFTER_BACKOFF
        if happened.event.is_wildcard:
            return _judge_wildcard(queued, happened)
        questions = self.questions(queued.rejector_plugins, happened.event)
        return self.answer(questions, queued.info, happened)

    def answer(self, questions: HintFunctions, info: PodInfo, happened: ObjectEvent) -> Requeue:
        """Ask about a pod until one says Queue."""
        for plugin, hint, strategy in questions.all:
            if hint is None or self._ask(hint, plugin, info, happened):
                return strategy
        return Requeue.SKIP

    def _ask(self, hint: Hint, plugin: str, info: PodInfo, happened: ObjectEvent) -> bool:
        durations = self._durations
        started = durations.now() if durations.is_followed else 0.0
        try:
            said = hint(info, happened.old, happened.new)
        except Exception as error:
            # A pod must not be stuck because a plugin is broken: a failed hint counts as Queue.
            durations.observe(plugin, happened.event, None, started)
            self._problems.append(
                f"pod {info.key}: the queueing hint of plugin {plugin} failed for event "
                f"{event_label(happened.event)}: {error!r}; expected QUEUE or SKIP, took QUEUE"
            )
            return True
        if durations.is_followed:
            durations.observe(plugin, happened.event, said, started)
        return said is QueueingHint.QUEUE


def _judge_wildcard(queued: QueuedPod, happened: ObjectEvent) -> Requeue:
    # A wildcard event about a pod, such as a forced activation, is meant for that pod alone.
    if isinstance(happened.new, PodInfo) and happened.new.uid != queued.uid:
        return Requeue.SKIP
    return Requeue.AFTER_BACKOFF
