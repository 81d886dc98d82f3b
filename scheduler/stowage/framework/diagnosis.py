"""The diagnosis of a pod without a feasible node; the fit error and preemption are based on it."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np

from stowage.api.status import Code, Status
from stowage.framework.filter_result import FilterResult, PreFilterOutcome
from stowage.framework.verdict import BoolArray
from stowage.state.snapshot import Snapshot


class Diagnosis(msgspec.Struct, frozen=True):
    """The rejections of one pod; ``framework.Diagnosis`` of v1.36.

    Attributes:
        num_nodes: Number of nodes in the cluster.
        reason_counts: Reason -> number of nodes that their first rejecting plugin rejected for it.
        unschedulable_plugins: The plugins that rejected the pod or a node.
        pending_plugins: The plugins that rejected the pod with Pending.
        pre_filter_status: The rejection of PreFilter; None if PreFilter accepted the pod.
        post_filter_message: The message of PostFilter.
        filtered: The statuses of single nodes, valid while the snapshot is current; None if
            PreFilter rejected the pod.
        failed_nomination: The row and status of the pod's nominated node, if it was evaluated first
            and rejected.
    """

    num_nodes: int
    reason_counts: Counter[str] = msgspec.field(default_factory=Counter)
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    pre_filter_status: Status | None = None
    post_filter_message: str = ""
    filtered: FilterResult | None = None
    failed_nomination: tuple[int, Status] | None = None

    @property
    def pre_filter_message(self) -> str:
        """The PreFilter rejection's message, or empty."""
        return self.pre_filter_status.message if self.pre_filter_status else ""

    def status(self, row: int) -> Status:
        """The status of the node in `row`; unresolvable if it was not filtered."""
        if self.pre_filter_status is not None:
            return self.pre_filter_status
        if self.filtered is not None and _was_asked(self.filtered, row):
            return self.filtered.status(row)
        if self.failed_nomination is not None and self.failed_nomination[0] == row:
            return self.failed_nomination[1]
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def resolvable(self, snapshot: Snapshot) -> BoolArray:
        """``bool[rows]``: nodes on which preemption may help.

        After a PreFilter rejection these are all nodes if its code is Unschedulable, else none.
        """
        if self.filtered is None:
            status = self.pre_filter_status
            plain = status is not None and status.code is Code.UNSCHEDULABLE
            return snapshot.exists.copy() if plain else np.zeros(snapshot.num_rows, dtype=np.bool_)
        resolvable = self.filtered.resolvable()
        if self.failed_nomination is not None:
            row, status = self.failed_nomination
            if not _was_asked(self.filtered, row):
                resolvable[row] = status.code is Code.UNSCHEDULABLE
        return resolvable

    def with_post_filter_message(self, message: str) -> Diagnosis:
        """The same diagnosis with the message of PostFilter."""
        return msgspec.structs.replace(self, post_filter_message=message)


def diagnose_pre_filter(outcome: PreFilterOutcome, num_nodes: int) -> Diagnosis:
    """The diagnosis of a pod that PreFilter rejected."""
    status = outcome.status
    by = frozenset({status.plugin}) if status.plugin else frozenset()
    pending = status.code is Code.PENDING
    return Diagnosis(
        num_nodes,
        unschedulable_plugins=outcome.plugins | by,
        pending_plugins=by if pending else frozenset(),
        pre_filter_status=status,
    )


def diagnose_filter(
    outcome: PreFilterOutcome,
    filtered: FilterResult,
    num_nodes: int,
    failed_nomination: tuple[int, Status] | None = None,
) -> Diagnosis:
    """The diagnosis of a pod for which Filter left no node.

    Args:
        outcome: The outcome of PreFilter.
        filtered: The result of Filter.
        num_nodes: Number of nodes in the cluster.
        failed_nomination: The row and status of the pod's nominated node. It counts even if
            PreFilter left the node out; its plugin is then listed as one that left nodes out (v1.36
            keeps both in one set).

    Raises:
        PluginFailed: A plugin failed while the reasons were computed.
    """
    counts, plugins = filtered.count_reasons()
    absent = num_nodes - filtered.num_evaluated
    if failed_nomination is not None:
        row, status = failed_nomination
        outcome = msgspec.structs.replace(outcome, plugins=outcome.plugins | {status.plugin})
        if not _was_asked(filtered, row):
            counts.update(status.reasons)
            absent -= 1
    if absent and outcome.node_names is not None:
        counts[absent_nodes_reason(outcome)] += absent
    return Diagnosis(
        num_nodes,
        counts,
        outcome.plugins | plugins,
        filtered=filtered,
        failed_nomination=failed_nomination,
    )


def absent_nodes_reason(outcome: PreFilterOutcome) -> str:
    """The reason of nodes that PreFilter left out; empty if it left all nodes in."""
    if outcome.node_names is None:
        return ""
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(outcome.plugins))}]"


def _was_asked(filtered: FilterResult, row: int) -> bool:
    rows = filtered.asked.rows
    position = int(np.searchsorted(rows, row))
    return position < len(rows) and int(rows[position]) == row


def fit_error_message(diagnosis: Diagnosis) -> str:
    """The message of the PodScheduled condition and of the FailedScheduling event.

    ``0/N nodes are available:``, the PreFilter message or else the reasons with their counts,
    sorted as text, and the message of PostFilter (``FitError.Error`` of v1.36).

    Examples:
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
