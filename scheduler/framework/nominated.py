"""Filtering nodes on which other pods are nominated: they must fit with and without them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import numpy as np

from scheduler.api.status import Status
from scheduler.framework.filter_result import FilterResult
from scheduler.framework.row_filter import RowFilter, first_statuses
from scheduler.framework.verdict import Int64Array
from scheduler.state.pod_info import PodInfo
from scheduler.state.row_what_if import RowWhatIf
from scheduler.state.snapshot import Snapshot


class Nominations(Protocol):
    """Which pods count on a node although they are not placed there yet."""

    def __len__(self) -> int: ...

    def nodes(self) -> Collection[str]:
        """The nodes that pods are nominated to."""
        ...

    def pods_on(self, node_name: str) -> Sequence[PodInfo]:
        """The pods nominated to a node."""
        ...


class NoNominations:
    """There are none."""

    def __len__(self) -> int:
        return 0

    def nodes(self) -> Collection[str]:
        """None."""
        return ()

    def pods_on(self, node_name: str) -> Sequence[PodInfo]:
        """Nobody."""
        del node_name
        return ()


NO_NOMINATIONS = NoNominations()


def nominated_on(
    rows: Int64Array, snapshot: Snapshot, pod: PodInfo, nominated: Nominations
) -> dict[int, list[PodInfo]]:
    """Row -> the other pods of equal or higher priority nominated there; ``addNominatedPods``."""
    if not len(nominated):
        return {}
    if len(nominated.nodes()) < len(rows):
        known = ((name, snapshot.row_of(name)) for name in nominated.nodes())
        meant = np.zeros(snapshot.num_rows, dtype=np.bool_)
        meant[rows] = True
        pairs = [(name, row) for name, row in known if row is not None and meant[row]]
    else:
        names = snapshot.node_names
        pairs = [(names[row], row) for row in rows.tolist()]
    found = {}
    for name, row in pairs:
        others = [
            other
            for other in nominated.pods_on(name)
            if other.priority >= pod.priority and other.uid != pod.uid
        ]
        if others:
            found[row] = others
    return found


def overrule_nominated(
    row_filter: RowFilter, pod: PodInfo, result: FilterResult, nominated: Nominations
) -> FilterResult:
    """Judge the nodes with nominated pods of equal or higher priority once more, with them.

    ``RunFilterPluginsWithNominatedPods``: each such node sees only the pods nominated to itself,
    and has to pass with them and without them, for they may never arrive.

    Args:
        row_filter: The Filter plugins.
        pod: The pod being scheduled; its own nomination does not count.
        result: Of filtering without nominated pods.
        nominated: All nominations.
    """
    snapshot = result.asked.snapshot
    feasible = nominated_on(result.rows, snapshot, pod, nominated)

    def rest() -> dict[int, Status]:
        asked = result.asked.rows[result.asked.exists]
        others = nominated_on(asked[~result.feasible[asked]], snapshot, pod, nominated)
        return _statuses(row_filter, pod, snapshot, others)

    overruled = _statuses(row_filter, pod, snapshot, feasible)
    return result.with_nominated(overruled, rest)


def _statuses(
    row_filter: RowFilter, pod: PodInfo, snapshot: Snapshot, by_row: Mapping[int, list[PodInfo]]
) -> dict[int, Status]:
    """Row -> why it does not take the pod with the nominated ones, where it does not."""
    if not by_row:
        return {}
    rows = np.array(sorted(by_row), dtype=np.int64)
    what_if = RowWhatIf(snapshot, rows, pod.pod_class.host_ports)
    added = [by_row[row] for row in rows.tolist()]
    verdicts = row_filter.judge(what_if, np.arange(len(rows)), added)
    found = first_statuses(verdicts, range(len(rows)))
    return {int(rows[place]): status for place, status in found.items()}
