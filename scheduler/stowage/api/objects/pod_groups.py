"""Pod groups, of Kubernetes itself and of the coscheduling plugin.

`PodGroup` is the kind of ``scheduling.k8s.io/v1alpha2``, and all that the scheduler knows. The
custom resource of the coscheduling plugin (``scheduling.x-k8s.io/v1alpha1``) is another source of
the same: `CoschedulingPodGroup.translated` makes a gang of it, and `member_of` reads its label. A
further source needs such a translation and an entry in ``stowage.api.reflected_kinds``.
"""

from stowage.api.objects.meta import ApiStruct, Condition, Int64, ObjectMeta
from stowage.api.objects.pod import Pod

#: The sources of pod groups: their API groups.
CORE_GROUPS = "scheduling.k8s.io"
COSCHEDULING_GROUPS = "scheduling.x-k8s.io"

#: The label by which a pod is a member of a group of the coscheduling plugin.
COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"

DISRUPTION_MODE_POD_GROUP = "PodGroup"


class GangSchedulingPolicy(ApiStruct, frozen=True):
    """Gang scheduling: at least ``min_count`` pods must fit at once."""

    min_count: Int64 = 0


class BasicSchedulingPolicy(ApiStruct, frozen=True):
    """The pods of the group are scheduled in one cycle, and those that fit are bound."""


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


class PodGroupStatus(ApiStruct, frozen=True):
    """PodGroupStatus."""

    conditions: tuple[Condition, ...] = ()


class PodGroup(ApiStruct, frozen=True):
    """Pods scheduled together (scheduling.k8s.io/v1alpha2)."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return self.metadata.namespaced_name

    @property
    def min_count(self) -> int | None:
        """How many members a gang needs at least; None for a basic group."""
        gang = self.spec.scheduling_policy.gang
        return None if gang is None else gang.min_count

    @property
    def topology_key(self) -> str:
        """The node label of which all members share a value; empty without such a constraint."""
        constraints = self.spec.scheduling_constraints
        topology = () if constraints is None else constraints.topology
        return topology[0].key if topology else ""

    @property
    def priority(self) -> int:
        """The group's priority as a preemptor and as a victim; 0 if it has none."""
        return self.spec.priority or 0

    @property
    def is_disrupted_as_a_whole(self) -> bool:
        """Whether a preemption by a group evicts either all members or none."""
        return self.spec.disruption_mode == DISRUPTION_MODE_POD_GROUP


class CoschedulingSpec(ApiStruct, frozen=True):
    """What scheduling reads of the custom resource; its ``minResources`` decides nothing here."""

    min_member: Int64 = 0
    schedule_timeout_seconds: Int64 | None = None


class CoschedulingPodGroup(ApiStruct, frozen=True):
    """A group of the coscheduling plugin (``scheduling.x-k8s.io/v1alpha1`` PodGroup)."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CoschedulingSpec = CoschedulingSpec()

    @property
    def permit_timeout_s(self) -> int | None:
        """How long a member waits for its companions; None if the group does not say."""
        timeout = self.spec.schedule_timeout_seconds
        return timeout if timeout is not None and timeout > 0 else None

    def translated(self) -> PodGroup:
        """The same group as a gang of at least ``minMember`` pods, one if it says none."""
        gang = GangSchedulingPolicy(max(self.spec.min_member, 1))
        return PodGroup(self.metadata, PodGroupSpec(PodGroupSchedulingPolicy(gang=gang)))


def member_of(pod: Pod) -> tuple[str, str]:
    """The name of the pod's group, in the namespace of the pod, and its source.

    ``spec.schedulingGroup`` comes first, then the label of the coscheduling plugin. The name is
    empty without a group.
    """
    group = pod.spec.scheduling_group
    if group is not None and group.pod_group_name:
        return group.pod_group_name, CORE_GROUPS
    return pod.metadata.labels.get(COSCHEDULING_LABEL, ""), COSCHEDULING_GROUPS
