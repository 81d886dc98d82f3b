"""Instructions that tell users about a pod or a pod group: conditions and Events."""

from __future__ import annotations

import msgspec

from stowage.api.instructions.references import POD, PodGroupReference, PodReference


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
