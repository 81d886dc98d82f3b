"""The recorded events that came from outside, adapted to a cluster with other decisions.

Kept are nodes, namespaces, workloads, budgets, device classes and slices, and that pods are
created, changed, deleted and finish. Left out are the outcomes of the recorded decisions: bindings,
statuses, evictions, the writes of volumes and claims. `VirtualCluster` makes those of the new ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from stowage.analysis.followed_objects import FollowedObjects
from stowage.analysis.outside_objects import OutsideObjects
from stowage.analysis.pod_stories import PodStory
from stowage.analysis.recorded_life import RecordedLife
from stowage.analysis.virtual_cluster import VirtualCluster
from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    BindFailed,
    BindSucceeded,
    ClaimDeletionFinished,
    ClaimsWritten,
    ConfigurationChanged,
    DeviceObjectGone,
    DeviceObjectSeen,
    Event,
    EvictionFinished,
    ExtendersAnswered,
    PendingPodGone,
    PendingPodSeen,
    PodsActivated,
    PreBindFinished,
    StorageGone,
    StorageSeen,
    VictimsReviewed,
    VolumesWritten,
    WaitingPodAllowed,
    WaitingPodRejected,
)
from stowage.api.objects.pod import Pod

_OUTCOMES = (
    PreBindFinished,
    VolumesWritten,
    ClaimsWritten,
    ClaimDeletionFinished,
    BindSucceeded,
    BindFailed,
    WaitingPodAllowed,
    WaitingPodRejected,
    PodsActivated,
    ExtendersAnswered,
    VictimsReviewed,
    EvictionFinished,
)


class OutsideEvents:
    """Turns recorded events into events of a cluster that decides by itself.

    A pod of the recording is known by its UID. In the cluster it has the same name, and another UID
    if it was preempted there and made again.

    Args:
        cluster: The cluster; its objects are changed.
        recorded: The whole recording.
        follows_configuration: Whether recorded changes of the configuration apply.

    Attributes:
        stories: UID in the recording -> story of the pod in the cluster.
    """

    def __init__(
        self, cluster: VirtualCluster, recorded: RecordedLife, *, follows_configuration: bool
    ) -> None:
        self.stories: dict[str, PodStory] = {}
        self._cluster = cluster
        self._recorded = recorded
        self._left_out: tuple[type[Event], ...] = _OUTCOMES
        if not follows_configuration:
            self._left_out += (ConfigurationChanged,)
        self._objects = OutsideObjects(cluster.objects, recorded)
        self._followed = FollowedObjects(cluster.objects)
        self._uid_at: dict[str, str] = {}
        self._recorded_nodes: dict[str, str] = {}

    def story_at(self, key: str) -> PodStory | None:
        """The story of the pod that has this ``namespace/name`` now."""
        return self.stories.get(self._uid_at.get(key, ""))

    def adapt(self, event: Event, now: float) -> Sequence[Event]:
        """The events to show to the engine; the objects are changed at once."""
        match event:
            case PendingPodSeen(pod) | AssignedPodSeen(pod):
                return self._pod_seen(pod, now)
            case PendingPodGone(uid=uid) if self._recorded.was_bound(uid):
                return ()
            case AssignedPodGone(uid=uid) if not self._recorded.was_shown_on_node(uid):
                return ()
            case PendingPodGone() | AssignedPodGone():
                return self._pod_gone(event, now)
            case StorageSeen() | StorageGone() | DeviceObjectSeen() | DeviceObjectGone():
                return self._objects.adapt(event, now)
        if isinstance(event, self._left_out):
            return ()
        self._followed.follow(event)
        return (event,)

    def strays(self, node_name: str) -> list[Pod]:
        """The pods on a removed node that were elsewhere in the recording.

        No recorded event deletes them.
        """
        return [
            pod
            for pod in self._cluster.objects.pods()
            if pod.spec.node_name == node_name
            and self._recorded_nodes.get(self._uid_at[pod.metadata.namespaced_name]) != node_name
        ]

    def _pod_seen(self, pod: Pod, now: float) -> Sequence[Event]:
        uid = pod.metadata.uid
        known_as = self._recorded.replaces.get(uid, uid)
        if pod.spec.node_name:
            self._recorded_nodes[known_as] = pod.spec.node_name
        if known_as != uid:
            return ()
        if uid not in self.stories:
            return self._new_pod(pod, now)
        current = self._current(uid)
        if current is None or (uid in self._recorded.victims and pod.metadata.deletion_timestamp):
            return ()
        if pod.metadata.deletion_timestamp and pod.spec.node_name and not current.spec.node_name:
            return self._delete(uid, current, now)
        updated = _updated(current, pod)
        self._cluster.objects.add(updated)
        return (_seen(updated),)

    def _new_pod(self, pod: Pod, now: float) -> Sequence[Event]:
        uid, key = pod.metadata.uid, pod.metadata.namespaced_name
        before = self._cluster.objects.pod(key)
        gone = () if before is None else self._delete(self._uid_at[key], before, now)
        story = PodStory(key, now, was_pending=not pod.spec.node_name)
        if pod.spec.node_name:
            story.place(pod.spec.node_name, now)
        self.stories[uid] = story
        self._uid_at[key] = uid
        self._cluster.objects.add(pod)
        return (*gone, _seen(pod))

    def _pod_gone(self, event: PendingPodGone | AssignedPodGone, now: float) -> Sequence[Event]:
        if event.uid in self._recorded.victims:
            return ()
        uid = self._recorded.replaces.get(event.uid, event.uid)
        current = self._current(uid)
        return () if current is None else self._delete(uid, current, now)

    def _current(self, uid: str) -> Pod | None:
        """The pod as it is in the cluster; None if it is gone."""
        story = self.stories.get(uid)
        if story is None or self._uid_at.get(story.key) != uid:
            return None
        return self._cluster.objects.pod(story.key)

    def _delete(self, uid: str, current: Pod, now: float) -> Sequence[Event]:
        self.stories[uid].gone = now
        self._uid_at.pop(current.metadata.namespaced_name, None)
        return self._cluster.deletion_of(current)


def _updated(current: Pod, pod: Pod) -> Pod:
    """The pod with its recorded changes, and with its own UID, node, nomination and claims."""
    is_same_life = bool(current.spec.node_name) == bool(pod.spec.node_name)
    status = replace(
        pod.status if is_same_life else current.status,
        nominated_node_name=current.status.nominated_node_name,
        extended_resource_claim_status=current.status.extended_resource_claim_status,
        resource_claim_statuses=(
            pod.status.resource_claim_statuses or current.status.resource_claim_statuses
        ),
    )
    metadata = replace(pod.metadata, uid=current.metadata.uid)
    return Pod(metadata, replace(pod.spec, node_name=current.spec.node_name), status)


def _seen(pod: Pod) -> Event:
    return AssignedPodSeen(pod) if pod.spec.node_name else PendingPodSeen(pod)
