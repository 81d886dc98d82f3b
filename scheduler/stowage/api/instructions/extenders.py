"""Instructions that ask extenders."""

from __future__ import annotations

import msgspec

from stowage.api.instructions.references import PodReference


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
