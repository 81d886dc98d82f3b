"""Filtering nodes on which other pods are nominated: they must fit with and without them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np

from scheduler.framework.filter_result import FilterResult
from scheduler.framework.node_verdicts import NodeVerdicts
from scheduler.framework.row_filter import RowFilter
from scheduler.framework.verdict import Int64Array
from scheduler.state.added_pods import NOBODY, AddedPods
from scheduler.state.pod_info import PodInfo
from scheduler.state.row_what_if import RowWhatIf
from scheduler.state.snapshot import Snapshot


class Nominations(Protocol):
    """Which pods count on a node although they are not placed there yet."""

    def __len__(self) -> int: ...

    @property
    def generation(self) -> int:
        """Grows with every change."""
        ...

    def nodes(self) -> Collection[str]:
        """The nodes that pods are nominated to."""
        ...

    def pods_on(self, node_name: str) -> Sequence[PodInfo]:
        """The pods nominated to a node."""
        ...


class NoNominations:
    """There are none."""

    generation = 0

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


class NominatedPods:
    """All nominations as arrays, made anew when nominations or nodes have changed.

    Nominations may be many and are looked at in every cycle, by several parts of it.
    """

    __slots__ = ("_index", "_made_from", "_pods", "_priority")

    def __init__(self) -> None:
        self._made_from: tuple[object, ...] = ()
        self._pods = NOBODY
        self._priority: Int64Array = np.empty(0, dtype=np.int64)
        self._index: dict[str, int] = {}

    def beside(self, pod: PodInfo, nominated: Nominations, snapshot: Snapshot) -> AddedPods:
        """The other pods of equal or higher priority, by the row they are nominated to."""
        if not len(nominated):
            return NOBODY
        nodes = snapshot.node_changes
        made_from = (nominated, nominated.generation, nodes, nodes.generation)
        if self._made_from != made_from:
            self._make(nominated, snapshot)
            self._made_from = made_from
        places = np.where(self._priority >= pod.priority, self._pods.places, -1)
        own = self._index.get(pod.uid)
        if own is not None:
            places[own] = -1
        return self._pods.moved(places)

    def _make(self, nominated: Nominations, snapshot: Snapshot) -> None:
        known = ((name, snapshot.row_of(name)) for name in nominated.nodes())
        pairs = [
            (row, pod) for name, row in known if row is not None for pod in nominated.pods_on(name)
        ]
        self._pods = AddedPods.of(pairs)
        self._priority = np.array([pod.priority for _, pod in pairs], dtype=np.int64)
        self._index = {pod.uid: index for index, (_, pod) in enumerate(pairs)}


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
    asked = np.zeros(len(result.feasible), dtype=np.bool_)
    asked[result.asked.rows] = True
    rows = np.flatnonzero(others.present(len(asked)) & asked & result.asked.snapshot.exists)
    if not len(rows):
        return result

    def judge(some: Int64Array) -> NodeVerdicts:
        what_if = RowWhatIf(result.asked.snapshot, some, pod.pod_class.host_ports)
        return row_filter.judge(what_if, np.arange(len(some)), others.at(some, len(asked)))

    feasible = result.feasible
    accepting = rows[feasible[rows]]
    if len(accepting):
        refused = accepting[~judge(accepting).feasible()]
        if len(refused):
            feasible = feasible.copy()
            feasible[refused] = False
    return result.with_nominated(feasible, lambda: judge(rows))
