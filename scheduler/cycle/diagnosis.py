"""The fit error: why a pod is unschedulable, in kube-scheduler's words."""

from __future__ import annotations

from scheduler.framework import Diagnosis

NO_NODES_AVAILABLE = "no nodes available to schedule pods"


def fit_error_message(diagnosis: Diagnosis) -> str:
    """The message of the PodScheduled condition and of the FailedScheduling event.

    ``0/N nodes are available:``, the PreFilter message or else the reasons with their counts,
    sorted as text, and what PostFilter had to say (``FitError.Error`` of v1.36).

    Examples:
        >>> from collections import Counter
        >>> counts = Counter({"node(s) had untolerated taint(s)": 3, "Insufficient cpu": 12})
        >>> fit_error_message(Diagnosis(15, counts))
        '0/15 nodes are available: 12 Insufficient cpu, 3 node(s) had untolerated taint(s).'
    """
    message = f"0/{diagnosis.num_nodes} nodes are available:"
    if diagnosis.pre_filter_message:
        message += f" {diagnosis.pre_filter_message}."
    elif diagnosis.reason_counts:
        counts = sorted(f"{count} {reason}" for reason, count in diagnosis.reason_counts.items())
        message += f" {', '.join(counts)}."
    if diagnosis.post_filter_message:
        message += f" {diagnosis.post_filter_message}"
    return message
