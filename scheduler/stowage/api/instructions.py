"""Instructions: the outputs of the engine, which the operator executes."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from stowage.api.decisions import BestNodes
from stowage.api.objects.device import AllocationResult, ResourceClaim, ResourceClaimSpec
from stowage.api.objects.meta import ObjectReference
from stowage.api.objects.pod import ContainerExtendedResourceRequest

#: Kinds of preemptors.
POD = "Pod"
POD_GROUP = "PodGroup"


class PodReference(msgspec.Struct, frozen=True):
    """A reference to a pod; the UID distinguishes pods of the same name."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class RunPreBind(msgspec.Struct, frozen=True, tag=True):
    """Run PreBind plugins of a profile, then report ``PreBindFinished``."""

    pod: PodReference
    node_name: str
    scheduler_name: str
    plugins: tuple[str, ...]


class StopPreBind(msgspec.Struct, frozen=True, tag=True):
    """Stop the PreBind plugins of a deleted pod; nothing is reported."""

    pod: PodReference


class BindVolumeToClaim(msgspec.Struct, frozen=True):
    """Set ``spec.claimRef`` of a persistent volume, unless the volume was updated since.

    Attributes:
        name: The name of the volume.
        uid: The UID of the volume.
        resource_version: The version on which the decision is based.
        claim_ref: The new ``spec.claimRef``.
        sets_bound_by_controller: Whether to set ``pv.kubernetes.io/bound-by-controller``.
    """

    name: str
    uid: str
    resource_version: str
    claim_ref: ObjectReference
    sets_bound_by_controller: bool


class SetSelectedNode(msgspec.Struct, frozen=True):
    """Set the selected node of a claim, unless the claim was updated since.

    Attributes:
        namespace: The namespace of the claim.
        name: The name of the claim.
        uid: The UID of the claim.
        resource_version: The version on which the decision is based.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str


class BindVolumes(msgspec.Struct, frozen=True, tag=True):
    """Write the volumes and claims of a pod, then report ``VolumesWritten``.

    If a write fails, the writes before it stay: they are valid for any node of the pod.
    """

    pod: PodReference
    node_name: str
    volumes: tuple[BindVolumeToClaim, ...] = ()
    claims: tuple[SetSelectedNode, ...] = ()


class ClaimReference(msgspec.Struct, frozen=True):
    """A reference to a resource claim in the version on which the decision is based."""

    namespace: str
    name: str
    uid: str
    resource_version: str

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class ClaimToBind(msgspec.Struct, frozen=True):
    """A resource claim to reserve for a pod.

    Attributes:
        claim: The claim as the engine knows it.
        allocation: The allocation to write first; None if the claim is allocated already.
    """

    claim: ResourceClaim
    allocation: AllocationResult | None = None


class ExtendedClaimToBind(msgspec.Struct, frozen=True):
    """The claim to create, allocate and reserve for the extended resources of a pod.

    Attributes:
        spec: The spec of the claim.
        allocation: The allocation.
        mappings: The request by which each container gets each resource, for the pod's status.
    """

    spec: ResourceClaimSpec
    allocation: AllocationResult
    mappings: tuple[ContainerExtendedResourceRequest, ...]


class BindClaims(msgspec.Struct, frozen=True, tag=True):
    """Allocate claims and reserve them for a pod, then report ``ClaimsWritten``.

    For each claim in order, then for the one to create: add the finalizer if the claim gets an
    allocation and has none, then write allocation and reservation to the status in one request.
    `stowage.api.values.claim_writes` says what to write, and when a claim that was read again after
    a conflict cannot be used any more. If a write fails, those before it stay. The report is made
    even if ``StopPreBind`` stops the writes. `number` is repeated in the report. `sets_time` says
    whether allocations get the time.
    """

    pod: PodReference
    node_name: str
    claims: tuple[ClaimToBind, ...] = ()
    extended: ExtendedClaimToBind | None = None
    number: int = 0
    sets_time: bool = True


class ReleaseClaims(msgspec.Struct, frozen=True, tag=True):
    """Remove a pod from the consumers of claims that were reserved for it; nothing is reported."""

    pod: PodReference
    claims: tuple[ClaimReference, ...]


class DeallocateClaim(msgspec.Struct, frozen=True, tag=True):
    """Clear allocation, consumers and device statuses of a claim that only the pod may use.

    Unless the claim was updated since; nothing is reported.
    """

    pod: PodReference
    claim: ClaimReference


class DeleteClaim(msgspec.Struct, frozen=True, tag=True):
    """Delete the claim for the extended resources of a pod, its finalizer first.

    Nothing is reported.
    """

    pod: PodReference
    claim: ClaimReference


class BindPod(msgspec.Struct, frozen=True, tag=True):
    """POST a Binding, then report ``BindSucceeded`` or ``BindFailed``.

    The API server copies the `annotations` of the Binding to the pod.
    """

    pod: PodReference
    node_name: str
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class BindByExtender(msgspec.Struct, frozen=True, tag=True):
    """Let an extender bind the pod, then report ``BindSucceeded`` or ``BindFailed``.

    `extender` is its index in the configuration. `fallback` is executed if an ignorable extender
    fails; None for other extenders.
    """

    pod: PodReference
    node_name: str
    extender: int
    fallback: BindPod | None = None


class ConsultExtenders(msgspec.Struct, frozen=True, tag=True):
    """Let extenders filter and score nodes for a pod, then report ``ExtendersAnswered``.

    `extenders` are indices in the configuration, in the order of the calls. `number` is repeated
    in the report.
    """

    pod: PodReference
    number: int
    node_names: tuple[str, ...]
    extenders: tuple[int, ...]


class VictimsOnNode(msgspec.Struct, frozen=True):
    """The victims of a preemption candidate, most important first.

    `num_violations` is how many evictions violate a disruption budget.
    """

    pods: tuple[PodReference, ...]
    num_violations: int = 0


class ConsultOnVictims(msgspec.Struct, frozen=True, tag=True):
    """Let extenders process preemption candidates, then report ``VictimsReviewed``.

    `candidates` are by node name; `extenders` and `number` are as in ``ConsultExtenders``.
    """

    pod: PodReference
    number: int
    candidates: dict[str, VictimsOnNode]
    extenders: tuple[int, ...]


class EvictPod(msgspec.Struct, frozen=True, tag=True):
    """Set the DisruptionTarget condition of a victim, delete it, report ``EvictionFinished``.

    Attributes:
        victim: The pod to delete.
        preemptor: The pod or the pod group for which it is deleted.
        scheduler_name: The profile of the preemptor.
        observed_generation: ``observedGeneration`` of the condition; 0 is not written.
        preemptor_kind: ``Pod`` or ``PodGroup``; the condition's message names it.
    """

    victim: PodReference
    preemptor: PodReference
    scheduler_name: str
    observed_generation: int = 0
    preemptor_kind: str = POD


class ClearNomination(msgspec.Struct, frozen=True, tag=True):
    """Clear ``status.nominatedNodeName`` of a pod: a more important pod preempts on the node."""

    pod: PodReference


class PreemptionAttempted(msgspec.Struct, frozen=True, tag=True):
    """The engine attempted preemption for a pod; for metrics and log.

    Attributes:
        pod: The preemptor.
        node_name: The chosen node; empty if there is none.
        num_victims: Number of victims, including terminating ones; 0 if none is evicted.
    """

    pod: PodReference
    node_name: str = ""
    num_victims: int = 0


class PreemptionFinished(msgspec.Struct, frozen=True, tag=True):
    """All victims of a pod are terminating, or one could not be evicted (`is_error`)."""

    pod: PodReference
    node_name: str
    is_error: bool
    duration_s: float


class BindingConditionsAwaited(msgspec.Struct, frozen=True, tag=True):
    """The wait for devices with binding conditions has ended; for metrics.

    Attributes:
        drivers: The drivers of these devices.
        status: ``success``, ``failed`` or ``timeout``.
        duration_s: Duration of the wait in seconds; 0 with the no-op timer.
    """

    pod: PodReference
    scheduler_name: str
    drivers: tuple[str, ...]
    status: str
    duration_s: float = 0.0


class ReadPod(msgspec.Struct, frozen=True, tag=True):
    """Read a pod whose binding the watch has not confirmed.

    Report ``AssignedPodGone`` if the pod is deleted, finished, replaced by another or without a
    node. Otherwise report nothing, since only the watch orders this state and a later deletion.
    """

    pod: PodReference


class PatchPodStatus(msgspec.Struct, frozen=True, tag=True):
    """Set the PodScheduled condition to False, or the nominated node, or both.

    Attributes:
        reason: The reason of the condition; empty leaves the condition unchanged.
        message: The message of the condition.
        nominated_node_name: None leaves it unchanged, an empty string clears it.
        observed_generation: ``observedGeneration`` of the condition; 0 is not written.
        is_transition: Whether to set ``lastTransitionTime``, because the condition is new or was
            not False.
    """

    pod: PodReference
    reason: str = ""
    message: str = ""
    nominated_node_name: str | None = None
    observed_generation: int = 0
    is_transition: bool = True


class EmitEvent(msgspec.Struct, frozen=True, tag=True):
    """Record an events.k8s.io/v1 Event about a pod; `event_type` is Normal or Warning.

    `related` is another pod that is involved, or a pod group if `related_kind` says so. The
    resource versions are those of the pods at the time of the event; empty if unknown. `decision`
    is the number of the attempt that the event is about, see ``AttemptResult``; 0 for none.
    """

    pod: PodReference
    event_type: str
    reason: str
    action: str
    note: str
    scheduler_name: str
    related: PodReference | None = None
    resource_version: str = ""
    related_resource_version: str = ""
    decision: int = 0
    related_kind: str = POD


class AttemptResult(msgspec.Struct, frozen=True, tag=True):
    """A scheduling attempt ended; for log, metrics and the record of decisions.

    Attributes:
        result: ``scheduled``, ``unschedulable`` or ``error``, as in
            ``scheduler_schedule_attempts_total``.
        node_name: The chosen node, if scheduled.
        message: The reason, if not scheduled.
        attempts: Number of attempts of this pod, including this one.
        evaluated_nodes: Number of nodes that were filtered.
        feasible_nodes: Number of nodes that passed.
        duration_s: Duration of the scheduling algorithm in seconds; 0 with the no-op timer.
        unschedulable_plugins: The plugins that rejected the pod or a node.
        scheduler_name: The profile.
        configuration: The hash of the configuration; empty if it has none.
        decision: Number of the attempt; the next attempt of the engine has a higher one.
        nominated_node_name: The node on which preemption makes room, if any.
        reason_counts: Reason -> number of nodes, if not scheduled.
        best: The best nodes with their scores, if nodes were scored.
        steps: The steps of a slow cycle with their durations in seconds; empty for others.
    """

    pod: PodReference
    result: str
    scheduler_name: str
    attempts: int
    node_name: str = ""
    message: str = ""
    evaluated_nodes: int = 0
    feasible_nodes: int = 0
    duration_s: float = 0.0
    unschedulable_plugins: tuple[str, ...] = ()
    configuration: str = ""
    decision: int = 0
    nominated_node_name: str = ""
    reason_counts: dict[str, int] = msgspec.field(default_factory=dict)
    best: BestNodes | None = None
    steps: tuple[tuple[str, float], ...] = ()


class PodGroupReference(msgspec.Struct, frozen=True):
    """A reference to a pod group of ``scheduling.k8s.io``."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class PatchPodGroupStatus(msgspec.Struct, frozen=True, tag=True):
    """Set the PodGroupScheduled condition of a pod group; nothing is reported.

    A strategic merge patch of the status subresource, as kube-scheduler makes it. Groups of other
    sources than ``scheduling.k8s.io`` have no such condition and get no patch.

    Attributes:
        group: The group.
        status: ``True`` or ``False``.
        reason: ``Scheduled``, ``Unschedulable`` or ``SchedulerError``.
        message: The message; empty if the status is True.
        observed_generation: ``observedGeneration`` of the condition; 0 is not written.
        is_transition: Whether to set ``lastTransitionTime``, because the condition is new or had
            another status.
    """

    group: PodGroupReference
    status: str
    reason: str
    message: str = ""
    observed_generation: int = 0
    is_transition: bool = True


class PodGroupAttemptResult(msgspec.Struct, frozen=True, tag=True):
    """A scheduling attempt of a pod group ended; for log and metrics.

    The attempts of its members have results of their own (``AttemptResult``).

    Attributes:
        namespace: The namespace of the group.
        name: The name of the group.
        result: ``scheduled``, ``unschedulable``, ``waiting_on_preemption`` or ``error``, as in
            ``scheduler_podgroup_schedule_attempts_total``.
        scheduler_name: The profile.
        message: The reason, if not scheduled.
        num_pods: Number of members that were attempted.
        num_fitting: Number of members that found a node.
        duration_s: Duration of the attempt in seconds; 0 with the no-op timer.
        algorithm_duration_s: Duration of the scheduling algorithm in seconds.
    """

    namespace: str
    name: str
    result: str
    scheduler_name: str
    message: str = ""
    num_pods: int = 0
    num_fitting: int = 0
    duration_s: float = 0.0
    algorithm_duration_s: float = 0.0


class PodBound(msgspec.Struct, frozen=True, tag=True):
    """A pod is bound; for the ``pod_scheduling_*`` metrics.

    `attempts` is the number of attempts, `since_first_attempt_s` the seconds since the first one.
    `was_flushed` says whether the last attempt was made because the pod timed out as unschedulable.
    """

    pod: PodReference
    node_name: str
    scheduler_name: str
    attempts: int
    since_first_attempt_s: float
    was_flushed: bool = False


class ReportProblem(msgspec.Struct, frozen=True, tag=True):
    """A problem that does not stop the scheduler; for the log.

    `subject` names the object; `text` says what is wrong and what was expected.
    """

    subject: str
    text: str


class ConfigurationApplied(msgspec.Struct, frozen=True, tag=True):
    """A configuration applies from the next cycle on; for log, metrics and an Event.

    Attributes:
        hash: The hash of the configuration.
        scheduler_names: The scheduler names of its profiles.
        dropped: Scheduler name -> number of pods that left the queue because no profile has it.
    """

    hash: str
    scheduler_names: tuple[str, ...]
    dropped: dict[str, int] = msgspec.field(default_factory=dict)


Instruction: TypeAlias = (
    RunPreBind
    | StopPreBind
    | BindVolumes
    | BindClaims
    | ReleaseClaims
    | DeallocateClaim
    | DeleteClaim
    | BindPod
    | BindByExtender
    | ConsultExtenders
    | ConsultOnVictims
    | EvictPod
    | ClearNomination
    | PreemptionAttempted
    | PreemptionFinished
    | BindingConditionsAwaited
    | ReadPod
    | PatchPodStatus
    | EmitEvent
    | AttemptResult
    | PatchPodGroupStatus
    | PodGroupAttemptResult
    | PodBound
    | ReportProblem
    | ConfigurationApplied
)
