"""Services and controllers for default topology spreading, and pod groups."""

import msgspec

from stowage.api.objects.meta import ApiStruct, Condition, Int64, LabelSelector, ObjectMeta


class SelectingSpec(ApiStruct, frozen=True):
    """A spec that selects pods by equality of labels."""

    selector: dict[str, str] = msgspec.field(default_factory=dict)


class LabelSelectingSpec(ApiStruct, frozen=True):
    """A spec that selects pods by a label selector."""

    selector: LabelSelector | None = None


class Service(ApiStruct, frozen=True):
    """A service."""

    metadata: ObjectMeta = ObjectMeta()
    spec: SelectingSpec = SelectingSpec()


class ReplicationController(ApiStruct, frozen=True):
    """A replication controller."""

    metadata: ObjectMeta = ObjectMeta()
    spec: SelectingSpec = SelectingSpec()


class ReplicaSet(ApiStruct, frozen=True):
    """A replica set."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LabelSelectingSpec = LabelSelectingSpec()


class StatefulSet(ApiStruct, frozen=True):
    """A stateful set."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LabelSelectingSpec = LabelSelectingSpec()


class GangSchedulingPolicy(ApiStruct, frozen=True):
    """Gang scheduling: at least ``min_count`` pods must fit at once."""

    min_count: Int64 = 0


class BasicSchedulingPolicy(ApiStruct, frozen=True):
    """Pods of the group are scheduled one by one."""


class PodGroupSchedulingPolicy(ApiStruct, frozen=True):
    """Exactly one of the two policies."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(ApiStruct, frozen=True):
    """All pods of the group go to nodes with the same value of this label."""

    key: str = ""


class PodGroupSchedulingConstraints(ApiStruct, frozen=True):
    """Constraints on the placement of a group."""

    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupSpec(ApiStruct, frozen=True):
    """How the pods of a group are scheduled together."""

    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: str | None = None
    priority: Int64 | None = None
    priority_class_name: str = ""


class PodGroupStatus(ApiStruct, frozen=True):
    """PodGroupStatus."""

    conditions: tuple[Condition, ...] = ()


class PodGroup(ApiStruct, frozen=True):
    """Pods scheduled together (scheduling.k8s.io/v1alpha2)."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
