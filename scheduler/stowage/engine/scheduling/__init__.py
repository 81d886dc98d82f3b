"""Room ``cycle``: one pod, one snapshot, one answer.

Purpose: `schedule_pod` runs a pod through PreFilter, Filter, PreScore and Score and returns the
node it goes to, or why it goes nowhere. `feasibility` finds the nodes it may go to, `ranking`
picks one of them, `diagnosis` words the refusal as kube-scheduler does. `step_pod` does the same
where extenders have a say: it ends where they have to be asked (`extenders`).
`refusals` answers a pod like the last one of its class that fits nowhere, while nothing changes.

Invariants:
    - It changes nothing: not the snapshot, not the cache; plugins write to the cycle state only.
    - No clock and no randomness: ties are broken by a `choose` that the caller passes in.
    - It knows extension points, not plugins.

Who may call it: ``engine`` for pods of the queue, simulations for pods that do not exist.

Rejected: stopping the search once enough nodes are found, as kube-scheduler does by default.
Judging all nodes at once costs no more than judging some, and finds the best one. A profile that
sets ``percentageOfNodesToScore`` gets what it asks for.
"""

from stowage.engine.scheduling.consulted import ConsultationNeeded, Consulted, ReviewNeeded
from stowage.engine.scheduling.feasibility import NodeSearch, num_feasible_nodes_to_find
from stowage.engine.scheduling.fit_error import NO_NODES_AVAILABLE, fit_error_message
from stowage.engine.scheduling.ranking import pick_node
from stowage.engine.scheduling.refusals import KnownRefusals
from stowage.engine.scheduling.scheduling_cycle import (
    Failed,
    Scheduled,
    SchedulingResult,
    SchedulingStep,
    Unschedulable,
    schedule_pod,
    step_pod,
)

__all__ = [
    "NO_NODES_AVAILABLE",
    "ConsultationNeeded",
    "Consulted",
    "Failed",
    "KnownRefusals",
    "NodeSearch",
    "ReviewNeeded",
    "Scheduled",
    "SchedulingResult",
    "SchedulingStep",
    "Unschedulable",
    "fit_error_message",
    "num_feasible_nodes_to_find",
    "pick_node",
    "schedule_pod",
    "step_pod",
]
