"""Filtering nodes on which other pods are nominated: they must fit with and without them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.api.status import Status
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.extension_points import PreFilterPlugin
from scheduler.framework.filter_result import FilterResult
from scheduler.framework.filter_run import FilterRun, rows_of
from scheduler.framework.pre_filter_run import run_pre_filter_plugins
from scheduler.framework.verdict import Int64Array
from scheduler.state.pod_info import PodInfo
from scheduler.state.snapshot import Snapshot

Nominations = Sequence[tuple[PodInfo, str]]


def overrule_nominated(
    filters: FilterRun,
    pre_filters: Sequence[PreFilterPlugin],
    pod: PodInfo,
    result: FilterResult,
    nominated: Nominations,
    state: CycleState,
) -> FilterResult:
    """Judge the nodes with nominated pods of equal or higher priority once more, with them.

    ``RunFilterPluginsWithNominatedPods``: each such node sees only the pods nominated to itself,
    and has to pass with them and without them, for they may never arrive.

    Args:
        filters: The Filter plugins.
        pre_filters: Run again, for the what-if cluster of each node.
        pod: The pod being scheduled; its own nomination does not count.
        result: Of filtering without nominated pods.
        nominated: (pod, node name) of all nominations.
        state: The cycle's state; what it skips is skipped here too.
    """
    snapshot = result.asked.snapshot
    by_node: dict[str, list[PodInfo]] = {}
    for other, node_name in nominated:
        if other.uid != pod.uid and other.priority >= pod.priority:
            by_node.setdefault(node_name, []).append(other)
    overruled: dict[int, Status] = {}
    for node_name, others in by_node.items():
        row = snapshot.row_of(node_name)
        if row is None or not _is_among(row, result.asked.rows):
            continue
        status = _with_nominated(filters, pre_filters, pod, snapshot, (node_name, others), state)
        if not status.is_success:
            overruled[row] = status
    return result.with_overruled(overruled) if overruled else result


def _is_among(row: int, ascending: Int64Array) -> bool:
    place = int(np.searchsorted(ascending, row))
    return place < len(ascending) and int(ascending[place]) == row


def _with_nominated(
    filters: FilterRun,
    pre_filters: Sequence[PreFilterPlugin],
    pod: PodInfo,
    snapshot: Snapshot,
    node: tuple[str, list[PodInfo]],
    state: CycleState,
) -> Status:
    node_name, others = node
    what_if = snapshot.with_pods([(other, node_name) for other in others])
    what_if_state = CycleState()
    run_pre_filter_plugins(pre_filters, what_if_state, pod, what_if)
    what_if_state.skip_filter |= state.skip_filter
    view = what_if.view(rows_of((node_name,), what_if))
    for answer in filters.judge(filters.active(what_if_state).all, what_if_state, pod, view):
        status = answer.status(0)
        if not status.is_success:
            return status
    return Status()
