"""The scheduling algorithm: one pod, one snapshot, one decision.

Purpose. `schedule_pod` runs a pod through PreFilter, Filter, PreScore and Score and returns the
node it goes to, or the reason why no node takes it. If extenders take part and have not answered,
it returns the question to them instead; it never waits.

Invariants.

- It changes neither the snapshot nor the cache. Plugins write to the cycle state only.
- It reads no clock and no randomness; the caller passes a `TieBreaker`.
- It knows extension points, not plugins.

Callers. `schedule_one` for pods of the queue, in steps; tests and the conformance suite for any
pod, at once.

Rejected. kube-scheduler ends the search as soon as enough nodes are feasible. Here all nodes are
evaluated at once, which costs no more and finds the best node. A profile that sets
``percentageOfNodesToScore`` still gets a limited search.
"""

from stowage.engine.scheduling.algorithm import schedule_pod, scheduling_steps
from stowage.engine.scheduling.extender_answers import ExtenderAnswers
from stowage.engine.scheduling.outcome import (
    ExtendersNeeded,
    Failed,
    Scheduled,
    SchedulingOutcome,
    SchedulingResult,
    Unschedulable,
    VictimReviewNeeded,
)
from stowage.engine.scheduling.refusal_cache import RefusalCache
from stowage.engine.scheduling.request import SchedulingRequest
from stowage.engine.scheduling.tie_breaker import TieBreaker

__all__ = [
    "ExtenderAnswers",
    "ExtendersNeeded",
    "Failed",
    "RefusalCache",
    "Scheduled",
    "SchedulingOutcome",
    "SchedulingRequest",
    "SchedulingResult",
    "TieBreaker",
    "Unschedulable",
    "VictimReviewNeeded",
    "schedule_pod",
    "scheduling_steps",
]
