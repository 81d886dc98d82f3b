"""What shall be done: the engine's outputs, carried out by the shell."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from stowage.api.objects.meta import ObjectReference


class PodReference(msgspec.Struct, frozen=True):
    """Which pod is meant; the UID tells two pods of one name apart."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class RunPreBind(msgspec.Struct, frozen=True, tag=True):
    """Run these PreBind plugins of a profile, then answer with ``PreBindFinished``."""

    pod: PodReference
    node_name: str
    scheduler_name: str
    plugins: tuple[str, ...]


class StopPreBind(msgspec.Struct, frozen=True, tag=True):
    """The pod is gone: end what is done before binding where it is; no answer is wanted."""

    pod: PodReference


class GiveVolume(msgspec.Struct, frozen=True):
    """Give a persistent volume to a claim, unless the volume has changed since.

    Attributes:
        name: The volume.
        uid: Its UID.
        resource_version: The one that was looked at.
        claim_ref: The claim, as the volume is to name it.
        is_marked: Whether the volume is to say that no user bound it.
    """

    name: str
    uid: str
    resource_version: str
    claim_ref: ObjectReference
    is_marked: bool


class SelectNode(msgspec.Struct, frozen=True):
    """Ask for a claim's volume on a node, unless the claim has changed since.

    Attributes:
        namespace: Of the claim.
        name: Of the claim.
        uid: Its UID.
        resource_version: The one that was looked at.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str


class BindVolumes(msgspec.Struct, frozen=True, tag=True):
    """Write what was decided about a pod's claims, then answer with ``VolumesWritten``.

    Nothing is taken back if a write fails: what is written is true whoever the pod's node is.
    """

    pod: PodReference
    node_name: str
    volumes: tuple[GiveVolume, ...] = ()
    claims: tuple[SelectNode, ...] = ()


class BindPod(msgspec.Struct, frozen=True, tag=True):
    """POST a Binding, then answer with ``BindSucceeded`` or ``BindFailed``."""

    pod: PodReference
    node_name: str


class BindByExtender(msgspec.Struct, frozen=True, tag=True):
    """Have an extender bind the pod, then answer with ``BindSucceeded`` or ``BindFailed``.

    `extender` is its index in the configuration. `fallback` is what to do if it fails; None if its
    failure may not be ignored.
    """

    pod: PodReference
    node_name: str
    extender: int
    fallback: BindPod | None = None


class ConsultExtenders(msgspec.Struct, frozen=True, tag=True):
    """Ask extenders about nodes for a pod, then answer with ``ExtendersAnswered``.

    `extenders` are indices in the configuration, in the order in which to ask; `number` belongs
    into the answer.
    """

    pod: PodReference
    number: int
    node_names: tuple[str, ...]
    extenders: tuple[int, ...]


class VictimsOnNode(msgspec.Struct, frozen=True):
    """What a preemption would do on a node: pods to be evicted, most important first.

    `num_violations` is how many of them a disruption budget does not allow to be evicted.
    """

    pods: tuple[PodReference, ...]
    num_violations: int = 0


class ConsultOnVictims(msgspec.Struct, frozen=True, tag=True):
    """Ask extenders which of these preemptions to leave, then answer with ``VictimsReviewed``.

    `candidates` are by node name; `extenders` and `number` are as in ``ConsultExtenders``.
    """

    pod: PodReference
    number: int
    candidates: dict[str, VictimsOnNode]
    extenders: tuple[int, ...]


class EvictPod(msgspec.Struct, frozen=True, tag=True):
    """Give a victim the DisruptionTarget condition, delete it, answer with ``EvictionFinished``.

    Attributes:
        victim: The pod that goes.
        preemptor: The pod it makes room for.
        scheduler_name: The preemptor's profile.
        observed_generation: Generation of the victim that the condition is about; 0 is not
            written.
    """

    victim: PodReference
    preemptor: PodReference
    scheduler_name: str
    observed_generation: int = 0


class ClearNomination(msgspec.Struct, frozen=True, tag=True):
    """Remove the nominated node from a pod's status: a more important pod has taken it."""

    pod: PodReference


class PreemptionAttempted(msgspec.Struct, frozen=True, tag=True):
    """Preemption was tried for a pod; for the metrics and the log.

    Attributes:
        pod: The preemptor.
        node_name: Where it makes room; empty if nowhere.
        num_victims: How many pods have to go there, those on their way out included; 0 if nobody
            is evicted for it.
    """

    pod: PodReference
    node_name: str = ""
    num_victims: int = 0


class PreemptionFinished(msgspec.Struct, frozen=True, tag=True):
    """All victims of a pod are on their way out, or one could not be evicted (`is_error`)."""

    pod: PodReference
    node_name: str
    is_error: bool
    duration_s: float


class ReadPod(msgspec.Struct, frozen=True, tag=True):
    """Read a pod back whose binding the watch has not confirmed.

    Answer with ``AssignedPodGone`` where it is gone, finished, another pod or without a node. That
    it is there is for the watch to tell: an answer that its deletion overtook would revive it.
    """

    pod: PodReference


class PatchPodStatus(msgspec.Struct, frozen=True, tag=True):
    """Set the PodScheduled condition to False, or the nominated node, or both.

    Attributes:
        reason: Of the condition; empty leaves the condition alone.
        message: Of the condition.
        nominated_node_name: None leaves it alone, an empty string clears it.
        observed_generation: Generation of the pod that the condition is about; 0 is not written.
        is_transition: Whether the condition is new or was not False, so that its
            ``lastTransitionTime`` is now; else it stays.
    """

    pod: PodReference
    reason: str = ""
    message: str = ""
    nominated_node_name: str | None = None
    observed_generation: int = 0
    is_transition: bool = True


class EmitEvent(msgspec.Struct, frozen=True, tag=True):
    """Record an events.k8s.io/v1 Event about a pod; `event_type` is Normal or Warning.

    `related` is another pod that has to do with it. The resource versions are those of the pods as
    they were when it happened; empty if that is not known.
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
    """One scheduling attempt ended; for the log line and the metrics.

    Attributes:
        result: ``scheduled``, ``unschedulable`` or ``error``, as in
            ``scheduler_schedule_attempts_total``.
        node_name: Where to, when scheduled.
        message: Why not, otherwise.
        attempts: How often this pod has been tried, this time included.
        evaluated_nodes: Nodes that were filtered.
        feasible_nodes: Nodes that passed.
        duration_s: Seconds the scheduling algorithm took; 0 with the no-op timer.
        unschedulable_plugins: Who rejected the pod or a node.
        scheduler_name: The profile.
        configuration: Hash of the configuration it was decided under; empty if nobody gave one.
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
    """A pod's way ended; for the ``pod_scheduling_*`` metrics.

    `attempts` is how many it took, `since_first_attempt_s` seconds since it was first tried.
    """

    pod: PodReference
    node_name: str
    scheduler_name: str
    attempts: int
    since_first_attempt_s: float


class ReportProblem(msgspec.Struct, frozen=True, tag=True):
    """Something is wrong that stops nothing else; for the log.

    `subject` names the object, `text` says what is wrong with it and what was expected.
    """

    subject: str
    text: str


class ConfigurationApplied(msgspec.Struct, frozen=True, tag=True):
    """The next cycle runs under this configuration; for the log, the metrics and its author.

    Attributes:
        hash: Of the configuration.
        scheduler_names: Of all its profiles.
        dropped: Scheduler name -> how many pods left the queue because no profile has it any more.
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
