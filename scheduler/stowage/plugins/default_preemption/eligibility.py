"""Decides whether a pod may preempt other pods."""

from __future__ import annotations

from stowage.api.status import Code
from stowage.framework import Diagnosis
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

NEVER = "not eligible due to preemptionPolicy=Never."
VICTIM_TERMINATING = "not eligible due to a terminating pod on the nominated node."


def is_never_eligible(pod: PodInfo) -> bool:
    """Whether the pod's policy forbids preemption (``PodEligibleToPreemptOthers`` of v1.36)."""
    return pod.pod_class.preemption_policy == "Never"


def awaited_victim(pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis) -> PodInfo | None:
    """A terminating victim that the pod has to wait for (``PodEligibleToPreemptOthers`` of v1.36).

    A pod with terminating victims on its nominated node preempts no others, unless the node is now
    rejected as unresolvable.
    """
    row = snapshot.row_of(pod.nominated_node_name)
    if row is None or diagnosis.status(row).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return None
    for other in snapshot.pods_on(pod.nominated_node_name):
        if other.is_leaving_for_preemption and other.priority < pod.priority:
            return other
    return None
