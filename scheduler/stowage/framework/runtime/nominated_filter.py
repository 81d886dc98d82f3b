"""Filtering nodes on which other pods are nominated: they must fit with and without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from stowage.framework.filter_result import FilterResult
from stowage.framework.runtime.row_filter import RowFilter
from stowage.framework.verdict import Int64Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.what_if.added_pods import AddedPods
from stowage.state.what_if.row_local import RowWhatIf

Answer = TypeVar("Answer")


def overrule_nominated(
    row_filter: RowFilter, pod: PodInfo, result: FilterResult, others: AddedPods
) -> FilterResult:
    """Judge the nodes with nominated pods of equal or higher priority once more, with them.

    ``RunFilterPluginsWithNominatedPods``: each such node sees only the pods nominated to itself,
    and has to pass with them and without them, for they may never arrive.

    Args:
        row_filter: The Filter plugins.
        pod: The pod being scheduled.
        result: Of filtering without nominated pods.
        others: The nominated pods that count, by row.
    """
    if not len(others):
        return result
    snapshot = result.asked.snapshot
    present = others.present(snapshot.num_rows)
    rows = np.flatnonzero(present & snapshot.exists)
    if len(result.asked) != snapshot.num_rows:
        rows = np.intersect1d(rows, result.asked.rows, assume_unique=True)
    if not len(rows):
        return result

    def ask(
        judge: Callable[[RowWhatIf, Int64Array, AddedPods], Answer], some: Int64Array
    ) -> Answer:
        what_if = RowWhatIf(snapshot, some, pod.pod_class.host_ports)
        return judge(what_if, np.arange(len(some)), others.at(some, snapshot.num_rows))

    feasible = result.feasible
    accepting = rows[feasible[rows]]
    if len(accepting):
        refused = accepting[~ask(row_filter.accepts, accepting)]
        if len(refused):
            feasible = feasible.copy()
            feasible[refused] = False
    return result.with_nominated(feasible, lambda: ask(row_filter.judge, rows))
