"""Event registrations: which plugins registered which events, and their queueing hints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import msgspec

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.queue.hint_durations import HintDurations
from stowage.queue.queue_events import event_label
from stowage.queue.queued_pod import QueuedPod, RejectorPlugins
from stowage.state.pods.pod_info import PodInfo

#: (pod, old object or None, new object or None) -> whether the event may help the pod.
Hint: TypeAlias = Callable[[PodInfo, Any, Any], QueueingHint]
#: (scheduler name, plugin name).
PluginKey: TypeAlias = tuple[str, str]


class Registration(NamedTuple):
    """An event that a plugin registered; without a hint every such event helps.

    Attributes:
        per_class: Whether the hint gives the same answer for all pods of a class.
        per_demand: Whether it does for all classes with the same `NodeDemand`; implies `per_class`.
    """

    event: ClusterEvent
    hint: Hint | None = None
    per_class: bool = False
    per_demand: bool = False


#: The registrations of each plugin of each profile.
Registrations: TypeAlias = Mapping[
    PluginKey, Sequence[Registration | tuple[ClusterEvent, Hint | None]]
]

_EVERYTHING = (Registration(ClusterEvent(EventResource.WILDCARD, ActionType.ALL)),)

_EventKind: TypeAlias = tuple[EventResource | str, ActionType]

# There are a few dozen kinds of events, and few plugins reject a pod together. The bound only
# guards against unusual unions of actions.
_MAX_REMEMBERED = 4096


class Requeue(Enum):
    """Where a pod goes after an event; ``queueingStrategy`` of v1.36."""

    SKIP = "skip"
    AFTER_BACKOFF = "afterBackoff"
    IMMEDIATELY = "immediately"


class ObjectEvent(msgspec.Struct, frozen=True):
    """A cluster event with the object it is about, before and after."""

    event: ClusterEvent
    old: Any = None
    new: Any = None

    @property
    def pod_uid(self) -> str:
        """The UID of the pod that the event is about; empty for other objects and deletions."""
        return self.new.uid if isinstance(self.new, PodInfo) else ""


class HintFunction(NamedTuple):
    """A hint to run for a pod, and where the pod goes if the hint answers Queue.

    Attributes:
        plugin: The plugin that registered the hint.
        hint: The hint; None counts as Queue.
        strategy: AFTER_BACKOFF, or IMMEDIATELY if the plugin had answered Pending.
    """

    plugin: str
    hint: Hint | None
    strategy: Requeue


class HintFunctions(msgspec.Struct, frozen=True):
    """The hints to run for pods that certain plugins rejected, for one kind of event.

    Attributes:
        all: In the order in which they run; the first that answers Queue decides.
        per_class: Whether each gives the same answer for all pods of a class.
        per_demand: Whether each does for all classes with the same `NodeDemand`.
    """

    all: tuple[HintFunction, ...]
    per_class: bool
    per_demand: bool


NO_HINT_FUNCTIONS = HintFunctions((), per_class=True, per_demand=True)


class EventRegistrations:
    """Finds the plugins that registered an event, and runs their hints for pods they rejected.

    A plugin without registrations counts as registered for every event, like a plugin that does
    not implement EnqueueExtensions in kube-scheduler. Lookups are remembered per kind of event: an
    event costs time in proportion to the plugins that registered it, not to all plugins.

    Args:
        registrations: The registrations of all plugins.
        problems: Receives the failures of hints.
        durations: Receives the durations of hints.
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
        self._by_event: dict[_EventKind, dict[PluginKey, tuple[Registration, ...]]] = {}
        self._hint_functions: dict[_EventKind, dict[RejectorPlugins, HintFunctions]] = {}

    def events_of(self, key: PluginKey) -> tuple[ClusterEvent, ...]:
        """The events that a plugin registered; an unknown plugin is registered for all events."""
        if key not in self._registered:
            self._registered[key] = _EVERYTHING
            self._by_event.clear()
            self._hint_functions.clear()
        return tuple(each.event for each in self._registered[key])

    def register_unknown(self, scheduler_name: str, plugins: Iterable[str]) -> None:
        """Register the unknown ones of these plugins for all events.

        An empty name stands for no plugin: only wildcard events move a pod that no plugin
        rejected, as in kube-scheduler.
        """
        for plugin in plugins:
            if plugin and (scheduler_name, plugin) not in self._registered:
                self.events_of((scheduler_name, plugin))

    def were_unknown(self, scheduler_name: str, plugins: Iterable[str]) -> bool:
        """Whether one of these plugins was unknown until it rejected a pod."""
        found = (self._registered.get((scheduler_name, plugin)) for plugin in plugins)
        return any(registered is _EVERYTHING for registered in found)

    def is_of_interest(self, event: ClusterEvent) -> bool:
        """Whether the event concerns all pods, or a plugin registered it."""
        return event.is_wildcard or bool(self.registered_for(event))

    def registered_for(self, event: ClusterEvent) -> dict[PluginKey, tuple[Registration, ...]]:
        """The plugins that registered the event, by name, each with the matching registrations."""
        kind = (event.resource, event.action)
        known = self._by_event.get(kind)
        if known is None:
            known = self._find_registered(event)
            if len(self._by_event) >= _MAX_REMEMBERED:
                self._by_event.clear()
            self._by_event[kind] = known
        return known

    def _find_registered(self, event: ClusterEvent) -> dict[PluginKey, tuple[Registration, ...]]:
        # Sorted, because unschedulable pods move in this order. Two texts of one configuration may
        # list the plugins differently, and a recording has the effective configuration only.
        found = {
            key: tuple(matching)
            for key, registered in self._registered.items()
            if (matching := [each for each in registered if each.event.matches(event)])
        }
        return dict(sorted(found.items(), key=itemgetter(0)))

    def hint_functions(
        self, rejector_plugins: RejectorPlugins, event: ClusterEvent
    ) -> HintFunctions:
        """The hints to run for pods that these plugins rejected; not for wildcard events.

        Only plugins that rejected the pod are asked. Plugins that answered Pending come first,
        because they let the pod skip its backoff.
        """
        kind = (event.resource, event.action)
        remembered = self._hint_functions.get(kind)
        if remembered is None:
            if len(self._hint_functions) >= _MAX_REMEMBERED:
                self._hint_functions.clear()
            remembered = self._hint_functions[kind] = {}
        known = remembered.get(rejector_plugins)
        if known is None:
            if len(remembered) >= _MAX_REMEMBERED:
                remembered.clear()
            known = self._find_hint_functions(rejector_plugins, event)
            remembered[rejector_plugins] = known
        return known

    def _find_hint_functions(
        self, rejector_plugins: RejectorPlugins, event: ClusterEvent
    ) -> HintFunctions:
        registered = self.registered_for(event)
        found: list[HintFunction] = []
        per_class = per_demand = True
        for plugins, strategy in (
            (rejector_plugins.pending, Requeue.IMMEDIATELY),
            (rejector_plugins.unschedulable, Requeue.AFTER_BACKOFF),
        ):
            for plugin in plugins:
                for each in registered.get((rejector_plugins.scheduler_name, plugin), ()):
                    found.append(HintFunction(plugin, each.hint, strategy))
                    has_own = each.hint is not None
                    per_class &= each.per_class or each.per_demand or not has_own
                    per_demand &= each.per_demand or not has_own
        return HintFunctions(tuple(found), per_class, per_demand)

    def strategy_for(self, queued: QueuedPod, object_event: ObjectEvent) -> Requeue:
        """Where a pod goes after an event; ``isPodWorthRequeuing`` of v1.36."""
        if not queued.was_rejected:
            return Requeue.AFTER_BACKOFF
        if object_event.event.is_wildcard:
            return _strategy_for_wildcard(queued, object_event)
        hints = self.hint_functions(queued.rejector_plugins, object_event.event)
        return self.run_hints(hints, queued.info, object_event)

    def run_hints(self, hints: HintFunctions, info: PodInfo, object_event: ObjectEvent) -> Requeue:
        """Run hints for a pod until one answers Queue."""
        for plugin, hint, strategy in hints.all:
            if hint is None or self._run(hint, plugin, info, object_event):
                return strategy
        return Requeue.SKIP

    def _run(self, hint: Hint, plugin: str, info: PodInfo, object_event: ObjectEvent) -> bool:
        durations = self._durations
        started = durations.now() if durations.is_followed else 0.0
        try:
            answer = hint(info, object_event.old, object_event.new)
        except Exception as error:
            # A failing plugin must not block the pod: a hint that raises counts as Queue.
            durations.observe(plugin, object_event.event, None, started)
            self._problems.append(
                f"pod {info.key}: the queueing hint of plugin {plugin} failed for event "
                f"{event_label(object_event.event)}: {error!r}; expected QUEUE or SKIP, took QUEUE"
            )
            return True
        if durations.is_followed:
            durations.observe(plugin, object_event.event, answer, started)
        return answer is QueueingHint.QUEUE


def _strategy_for_wildcard(queued: QueuedPod, object_event: ObjectEvent) -> Requeue:
    # A wildcard event about a pod, such as a forced activation, concerns that pod alone.
    if isinstance(object_event.new, PodInfo) and object_event.new.uid != queued.uid:
        return Requeue.SKIP
    return Requeue.AFTER_BACKOFF
