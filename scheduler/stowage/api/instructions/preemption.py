"""Instructions that evict the victims of a preemption."""

from __future__ import annotations

import msgspec

from stowage.api.instructions.references import POD, PodReference


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
