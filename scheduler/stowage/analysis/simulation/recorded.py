"""A workload from a recording: its nodes, and the arrivals and durations of its pods."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.followed_objects import FollowedObjects
from stowage.analysis.outside_objects import OutsideObjects
from stowage.analysis.pod_stories import PodStory
from stowage.analysis.recorded_life import RecordedLife
from stowage.analysis.simulation.timeline import (
    Adapt,
    Happening,
    NodeJoins,
    NodeLeaves,
    OutsideEvent,
    PodArrives,
    PodLeaves,
    Timeline,
)
from stowage.api.events import (
    AssignedPodSeen,
    CustomObjectGone,
    CustomObjectSeen,
    CustomResourceGone,
    DeviceObjectGone,
    DeviceObjectSeen,
    DisruptionBudgetGone,
    DisruptionBudgetSeen,
    Event,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    PendingPodSeen,
    PodGroupGone,
    PodGroupSeen,
    PodGroupsServed,
    StorageGone,
    StorageSeen,
    WorkloadGone,
    WorkloadSeen,
)
from stowage.api.objects.device import ResourceClaim
from stowage.api.objects.meta import controller_of
from stowage.api.objects.pod import Pod
from stowage.engine.journal import Entry, HandleCall

_OBJECTS = (StorageSeen, StorageGone, DeviceObjectSeen, DeviceObjectGone)
_SHOWN = (
    *_OBJECTS,
    NamespaceSeen,
    NamespaceGone,
    WorkloadSeen,
    WorkloadGone,
    DisruptionBudgetSeen,
    DisruptionBudgetGone,
    PodGroupSeen,
    PodGroupGone,
    PodGroupsServed,
    CustomObjectSeen,
    CustomObjectGone,
    CustomResourceGone,
)


class RecordedWorkload:
    """What came from outside in a recording; read its calls, oldest first, with `add`.

    A pod arrives when the scheduler could first attempt it, and runs for as long as it did in the
    recording, counted from its node in the simulation. Pods that had a node at the start stay until
    the time at which they were gone.

    Args:
        name: The name of the trace.
        recorded: The whole recording, read before.

    Attributes:
        name: The name of the trace.
    """

    def __init__(self, name: str, recorded: RecordedLife) -> None:
        self.name = name
        self._recorded = recorded
        self._happenings: list[Happening] = []
        self._place: dict[str, int] = {}
        self._ready: set[str] = set()

    def add(self, entry: Entry) -> None:
        """Read the next call."""
        for event in entry.events if isinstance(entry, HandleCall) else ():
            self._add(event, self._since_start(entry.now))

    def finish(self) -> None:
        """Add the departures of pods; call it after the last `add`."""
        for story in self._recorded.stories.values():
            if story.gone is not None and (story.placed is None or not story.was_pending):
                self._happenings.append(PodLeaves(self._since_start(story.gone), story.key))
        self._happenings.sort(key=lambda each: each.at_s)
        self._place.clear()
        self._ready.clear()

    def timeline(self, seed: int) -> Timeline:  # noqa: ARG002 - what happened, happened
        """The course; the seed does not matter."""
        ends_at = self._since_start(self._recorded.ended)
        return Timeline(
            ClusterObjects,
            self._happenings,
            ends_at,
            ends_at,
            tuple(sorted(self._recorded.scheduler_names)),
            self._adapter,
        )

    def _since_start(self, now: float) -> float:
        return max(0.0, now - self._recorded.decides_from)

    def _add(self, event: Event, at_s: float) -> None:
        match event:
            case PendingPodSeen(pod) | AssignedPodSeen(pod):
                self._add_pod(pod, at_s)
            case NodeSeen(node):
                self._happenings.append(NodeJoins(at_s, node))
            case NodeGone(name):
                self._happenings.append(NodeLeaves(at_s, name))
            case _ if isinstance(event, _SHOWN):
                self._happenings.append(OutsideEvent(at_s, event))

    def _add_pod(self, pod: Pod, at_s: float) -> None:
        """Add an arrival, or move it to the time at which the pod can be attempted."""
        uid = pod.metadata.uid
        story = self._recorded.stories.get(uid)
        if story is None or uid in self._ready:
            return
        is_pending = not pod.spec.node_name
        if story.was_pending != is_pending:
            return
        if not is_pending or _is_ready(pod):
            self._ready.add(uid)
        arrival = PodArrives(at_s, _unnominated(pod), _duration_s(story))
        if uid in self._place:
            self._happenings[self._place[uid]] = arrival
        else:
            self._place[uid] = len(self._happenings)
            self._happenings.append(arrival)

    def _adapter(self, objects: ClusterObjects) -> Adapt:
        followed = FollowedObjects(objects)
        outside = OutsideObjects(objects, self._recorded)
        decides_from = self._recorded.decides_from

        def adapt(happening: OutsideEvent) -> Sequence[Event]:
            event = happening.event
            if not isinstance(event, _OBJECTS):
                followed.follow(event)
                return (event,)
            if isinstance(event, DeviceObjectGone) and _is_of_pod(event, objects):
                return ()  # it goes with its pod
            return outside.adapt(event, decides_from + happening.at_s)

        return adapt


def _is_ready(pod: Pod) -> bool:
    """Whether the pod has no gates, and the claims that templates make for it."""
    named = {each.name for each in pod.status.resource_claim_statuses}
    return not pod.spec.scheduling_gates and all(
        each.name in named
        for each in pod.spec.resource_claims
        if each.resource_claim_template_name is not None
    )


def _unnominated(pod: Pod) -> Pod:
    if not pod.status.nominated_node_name:
        return pod
    return replace(pod, status=replace(pod.status, nominated_node_name=""))


def _duration_s(story: PodStory) -> float | None:
    if story.placed is None or story.gone is None:
        return None
    return max(0.0, story.gone - story.placed)


def _is_of_pod(event: DeviceObjectGone, objects: ClusterObjects) -> bool:
    claim = objects.find(ResourceClaim, f"{event.namespace}/{event.name}")
    owner = None if claim is None else controller_of(claim.metadata)
    return owner is not None and owner.kind == Pod.__name__
