"""What really happened to the pods of a recording, and which of its events have which cause.

A recording of a scheduler has its instructions; one of an observer has events only. So bindings and
preemptions are taken from what the watches showed, and evictions also from the instructions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from stowage.analysis.pod_stories import PodStory
from stowage.analysis.utilisation import UtilisationSamples
from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    BindSucceeded,
    Event,
    NodeGone,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
    StorageSeen,
)
from stowage.api.instructions import EvictPod
from stowage.api.objects.meta import ObjectMeta, controller_of
from stowage.api.objects.pod import Pod
from stowage.api.objects.volume import StorageClass
from stowage.engine import Engine
from stowage.engine.journal import Entry, HandleCall, ScheduleCall

_PREEMPTED = ("DisruptionTarget", "PreemptionByScheduler")
_WAITS = "WaitForFirstConsumer"


class RecordedLife:
    """Reads the calls of a recording, oldest first, with `add`.

    Args:
        engine: An engine without pods, to count requested resources with.
        time_of_day: Makes an RFC 3339 time of a time of the engine's clock.

    Attributes:
        stories: UID -> story of the pod.
        replaces: UID of a pod -> UID of the preempted pod that its controller replaced by it.
        victims: The UIDs of preempted pods.
        delayed_classes: The storage classes whose claims wait for a pod.
        scheduler_names: Those of the pods that were seen without a node.
        started: The time of the first call.
        ended: The time of the last call.
        samples: The utilisation.
    """

    def __init__(self, engine: Engine, time_of_day: Callable[[float], str]) -> None:
        self.stories: dict[str, PodStory] = {}
        self.replaces: dict[str, str] = {}
        self.victims: set[str] = set()
        self.delayed_classes: set[str] = set()
        self.scheduler_names: set[str] = set()
        self.started = 0.0
        self.ended = 0.0
        self.samples = UtilisationSamples()
        self._engine = engine
        self._time_of_day = time_of_day
        self._listed_until = 0.0
        self._nodes: set[str] = set()
        self._first_attempt: float | None = None
        self._num_calls = 0
        self._shown: set[str] = set()
        self._confirmed: set[str] = set()
        self._not_replaced: dict[str, deque[str]] = {}
        self._controllers: dict[str, str] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Of a recording that is read to its end, everything but what reads calls is sent."""
        reading = ("_engine", "_time_of_day")
        return {name: value for name, value in vars(self).items() if name not in reading}

    @property
    def decides_from(self) -> float:
        """When the first decision could be made: the first lists were complete.

        An observer does not say when. No watch shows a pod or a node for the first time that is
        older than the recording, so such objects are of the first lists.
        """
        return self._listed_until if self._first_attempt is None else self._first_attempt

    def was_bound(self, uid: str) -> bool:
        """Whether the pod was bound, in the whole recording."""
        return uid in self._shown or uid in self._confirmed

    def was_shown_on_node(self, uid: str) -> bool:
        """Whether the watch showed the pod on a node."""
        return uid in self._shown

    def add(self, entry: Entry) -> None:
        """Read the next call."""
        if not self._num_calls:
            self.started = self._listed_until = entry.now
        self._num_calls += 1
        self.ended = entry.now
        if self._first_attempt is None and isinstance(entry, ScheduleCall):
            self._first_attempt = entry.now
        self.samples.advance(entry.now, self._engine.state.cache.snapshot())
        events = entry.events if isinstance(entry, HandleCall) else ()
        self._engine.handle([each for each in events if isinstance(each, _COUNTED)], entry.now)
        for event in events:
            self._follow(event, entry.now)
        for instruction in entry.instructions:
            if isinstance(instruction, EvictPod):
                self._preempted(instruction.victim.uid)

    def _follow(self, event: Event, now: float) -> None:
        match event:
            case PendingPodSeen(pod):
                self._pod_seen(pod, now)
            case AssignedPodSeen(pod):
                self._assigned_pod_seen(pod, now)
            case NodeSeen(node) if node.metadata.name not in self._nodes:
                self._nodes.add(node.metadata.name)
                self._first_seen(node.metadata, now)
            case BindSucceeded(uid, node):
                self._confirmed.add(uid)
                self._placed(uid, node, now)
            case AssignedPodGone() | PendingPodGone():
                self._pod_gone(event, now)
            case StorageSeen(StorageClass() as found) if found.volume_binding_mode == _WAITS:
                self.delayed_classes.add(found.metadata.name)

    def _first_seen(self, metadata: ObjectMeta, now: float) -> None:
        created = metadata.creation_timestamp
        if created is not None and created < self._time_of_day(self.started):
            self._listed_until = now

    def _pod_seen(self, pod: Pod, now: float) -> None:
        uid = pod.metadata.uid
        if uid in self.stories or uid in self.replaces:
            return
        self._first_seen(pod.metadata, now)
        owner = controller_of(pod.metadata)
        if owner is not None:
            self._controllers[uid] = owner.uid
            owed = self._not_replaced.get(owner.uid)
            if owed:
                victim = owed.popleft()
                self.replaces[uid] = self.replaces.get(victim, victim)
                return
        was_pending = not pod.spec.node_name
        self.stories[uid] = PodStory(pod.metadata.namespaced_name, now, was_pending)
        if was_pending:
            self.scheduler_names.add(pod.spec.scheduler_name)

    def _assigned_pod_seen(self, pod: Pod, now: float) -> None:
        uid = pod.metadata.uid
        self._pod_seen(pod, now)
        self._shown.add(uid)
        if uid not in self.victims:
            self._placed(uid, pod.spec.node_name, now)
        if any((each.type, each.reason) == _PREEMPTED for each in pod.status.conditions):
            self._preempted(uid)

    def _placed(self, uid: str, node: str, now: float) -> None:
        story = self.stories.get(self.replaces.get(uid, uid))
        if story is not None and story.node != node:
            story.place(node, now)

    def _preempted(self, uid: str) -> None:
        story = self.stories.get(self.replaces.get(uid, uid))
        if uid in self.victims or story is None:
            return
        self.victims.add(uid)
        story.node = ""
        owner = self._controllers.get(uid)
        if owner is not None:
            self._not_replaced.setdefault(owner, deque()).append(uid)

    def _pod_gone(self, event: AssignedPodGone | PendingPodGone, now: float) -> None:
        uid = event.uid
        is_pending = isinstance(event, PendingPodGone)
        if not is_pending:
            self._confirmed.discard(uid)
        story = self.stories.get(self.replaces.get(uid, uid))
        if story is None or uid in self.victims or is_pending == (uid in self._shown):
            return
        story.gone = now


_COUNTED = (NodeSeen, NodeGone, AssignedPodSeen, AssignedPodGone)
