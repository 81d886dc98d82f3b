"""Changes of nodes, pods and storage objects, as actions of cluster events.

See ``framework/events.go`` of v1.36.
"""

from __future__ import annotations

import msgspec

from stowage.api.cluster_events import ActionType
from stowage.api.objects.device import DeviceObject
from stowage.api.objects.node import Node
from stowage.api.objects.volume import StorageObject
from stowage.state.pods.pod_info import PodInfo

NOTHING_CHANGED = ActionType(0)


class NodeChange(msgspec.Struct, frozen=True):
    """The effect of a node event.

    Attributes:
        old: The node before; None if it is new.
        new: The node now.
        actions: `ActionType.ADD`, or the kinds of update; none if scheduling is not affected.
        ignored: The event is older than the known version.
    """

    old: Node | None
    new: Node
    actions: ActionType
    ignored: bool = False


class PodChange(msgspec.Struct, frozen=True):
    """The effect of an event about an assigned pod.

    Attributes:
        old: The pod before; None if it is new.
        new: The pod now; None if it ended.
        actions: `ActionType.ADD`, `ActionType.DELETE` or the kinds of update.
        confirmed: The pod was assumed on this node, and the event shows that it is bound there.
        moved_from: The other node that the pod was on, or assumed to be on, before.
        ignored: The event is older than the known version.
    """

    old: PodInfo | None
    new: PodInfo | None
    actions: ActionType
    confirmed: bool = False
    moved_from: str | None = None
    ignored: bool = False


class StorageChange(msgspec.Struct, frozen=True):
    """The effect of an event about a storage object.

    Attributes:
        old: The object before; None if it is new.
        new: The object now.
        ignored: The event is older than the known version, or equal to it.
    """

    old: StorageObject | None
    new: StorageObject
    ignored: bool = False


class DeviceObjectChange(msgspec.Struct, frozen=True):
    """The effect of an event about a claim, a device class or a slice.

    Attributes:
        old: The object before, for a slice as it is stored; None if it is new.
        new: The object now.
        ignored: The event is older than the known version, or equal to it.
    """

    old: object | None
    new: DeviceObject
    ignored: bool = False


def node_update_actions(old: Node, new: Node) -> ActionType:
    """The kinds of a node update (``NodeSchedulingPropertiesChange``)."""
    actions = 0
    if old.status.allocatable != new.status.allocatable:
        actions |= ActionType.UPDATE_NODE_ALLOCATABLE.value
    if old.metadata.labels != new.metadata.labels:
        actions |= ActionType.UPDATE_NODE_LABEL.value
    if old.spec.taints != new.spec.taints or old.spec.unschedulable > new.spec.unschedulable:
        actions |= ActionType.UPDATE_NODE_TAINT.value
    if not _same_condition_statuses(old, new):
        actions |= ActionType.UPDATE_NODE_CONDITION.value
    if old.metadata.annotations != new.metadata.annotations:
        actions |= ActionType.UPDATE_NODE_ANNOTATION.value
    if old.status.declared_features != new.status.declared_features:
        actions |= ActionType.UPDATE_NODE_DECLARED_FEATURE.value
    return ActionType(actions) if actions else NOTHING_CHANGED


def pod_update_actions(old: PodInfo, new: PodInfo) -> ActionType:
    """The kinds of a pod update (``PodSchedulingPropertiesChange``).

    `ActionType.UPDATE_POD_OTHER` if the update has no kind of its own.
    """
    actions = 0
    if (
        old.resource_claim_statuses != new.resource_claim_statuses
        or old.extended_claim_status != new.extended_claim_status
    ):
        actions |= ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM.value
    before, after = old.pod_class, new.pod_class
    if before is not after:
        if before.labels != after.labels:
            actions |= ActionType.UPDATE_POD_LABEL.value
        if any(amount > after.requests.get(name, -1) for name, amount in before.requests.items()):
            actions |= ActionType.UPDATE_POD_SCALE_DOWN.value
        if len(before.spec.tolerations) != len(after.spec.tolerations):
            actions |= ActionType.UPDATE_POD_TOLERATION.value
        if before.scheduling_gates and not after.scheduling_gates:
            actions |= ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED.value
    return ActionType(actions) if actions else ActionType.UPDATE_POD_OTHER


def is_older(resource_version: str, known: str) -> bool:
    """Whether one resource version precedes another; False if they cannot be compared."""
    if resource_version == known or not (resource_version.isdecimal() and known.isdecimal()):
        return False
    return int(resource_version) < int(known)


def same_columns(old: Node, new: Node) -> bool:
    """Whether two versions of a node are equal in all that answers about a node depend on."""
    before, after = old.status, new.status
    return (
        old.metadata.labels == new.metadata.labels
        and old.metadata.annotations == new.metadata.annotations
        and old.spec == new.spec
        and before.allocatable == after.allocatable
        and before.declared_features == after.declared_features
        and before.images == after.images
        and _same_condition_statuses(old, new)
    )


def _same_condition_statuses(old: Node, new: Node) -> bool:
    """Whether two versions of a node report the same statuses of conditions."""
    return old.status.conditions == new.status.conditions or _statuses(old) == _statuses(new)


def _statuses(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}
