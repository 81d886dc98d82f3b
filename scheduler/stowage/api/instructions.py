"""Instructions: the outputs of the engine, which the operator executes."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from stowage.api.objects.meta import ObjectReference


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


class GiveVolume(msgspec.Struct, frozen=True):
    """Set ``spec.claimRef`` of a persistent volume, unless the volume was updated since.

    Attributes:
        name: The name of the volume.
        uid: The UID of the volume.
        resource_version: The version on which the decision is based.
        claim_ref: The new ``spec.claimRef``.
        is_marked: Whether to set the annotation ``pv.kubernetes.io/bound-by-controller``.
    """

    name: str
    uid: str
    resource_version: str
    claim_ref: ObjectReference
    is_marked: bool


class SelectNode(msgspec.Struct, frozen=True):
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
    volumes: tuple[GiveVolume, ...] = ()
    claims: tuple[SelectNode, ...] = ()


class BindPod(msgspec.Struct, frozen=True, tag=True):
    """POST a Binding, then report ``BindSucceeded`` or ``BindFailed``."""

    pod: PodReference
    node_name: str


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
        preemptor: The pod for which it is deleted.
        scheduler_name: The profile of the preemptor.
        observed_generation: ``observedGeneration`` of the condition; 0 is not written.
    """

    victim: PodReference
    preemptor: PodReference
    scheduler_name: str
    observed_generation: int = 0


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

    `related` is another pod that is involved. The resource versions are those of the pods at the
    time of the event; empty if unknown.
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


class AttemptResult(msgspec.Struct, frozen=True, tag=True):
    """A scheduling attempt ended; for log and metrics.

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


class PodBound(msgspec.Struct, frozen=True, tag=True):
    """A pod is bound; for the ``pod_scheduling_*`` metrics.

    `attempts` is the number of attempts, `since_first_attempt_s` the seconds since the first one.
    """

    pod: PodReference
    node_name: str
    scheduler_name: str
    attempts: int
    since_first_attempt_s: float


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
    | BindPod
    | BindByExtender
    | ConsultExtenders
    | ConsultOnVictims
    | EvictPod
    | ClearNomination
    | PreemptionAttempted
    | PreemptionFinished
    | ReadPod
    | PatchPodStatus
    | EmitEvent
    | AttemptResult
    | PodBound
    | ReportProblem
    | ConfigurationApplied
)
