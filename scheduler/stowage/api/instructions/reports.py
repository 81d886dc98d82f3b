"""What the engine did, for log, metrics and the record of decisions."""

from __future__ import annotations

import msgspec

from stowage.api.decisions import BestNodes
from stowage.api.instructions.references import PodReference


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
        first_fit: Whether the search ended at the first of several feasible nodes, because nothing
            rates nodes.
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
    first_fit: bool = False


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


class ConfigurationFailed(msgspec.Struct, frozen=True, tag=True):
    """The engine cannot apply a configuration, and keeps the one before; for log and an Event.

    Attributes:
        hash: The hash of the configuration.
        text: The reason.
    """

    hash: str
    text: str
