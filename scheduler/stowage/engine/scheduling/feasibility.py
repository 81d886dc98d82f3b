"""Finding the nodes a pod may go to."""

from __future__ import annotations

import msgspec
import numpy as np

from stowage.api.status import Status
from stowage.engine.scheduling.consulted import Consulted
from stowage.engine.scheduling.refusals import KnownRefusals
from stowage.framework import (
    NO_NOMINATIONS,
    CycleState,
    FilterResult,
    Framework,
    Nominations,
    PreFilterOutcome,
    VictimReview,
)
from stowage.framework.verdict import Int64Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

MIN_FEASIBLE_NODES_TO_FIND = 100


# One of each is made for every pod: structs are made far faster than frozen dataclasses.


class NodeSearch(msgspec.Struct, frozen=True):
    """How to search.

    Attributes:
        nominated: All nominations.
        percentage: ``percentageOfNodesToScore``: stop once this share of the nodes is feasible;
            None or 0 for all of them.
        start_row: Where to start then; pass the last result's `next_start_row`.
        consulted: What extenders said; None if none has a say.
        reviews_victims: Whether an extender has a say about the victims of a preemption.
        review: What they said about them; None if they have not been asked.
        refusals: What pods were told before, and where this pod's refusal is kept; None keeps
            none.
    """

    nominated: Nominations = NO_NOMINATIONS
    percentage: int | None = None
    start_row: int = 0
    consulted: Consulted | None = None
    reviews_victims: bool = False
    review: VictimReview | None = None
    refusals: KnownRefusals | None = None


SEARCH_ALL = NodeSearch()


class FeasibleNodes(msgspec.Struct, frozen=True):
    """The outcome of a search.

    Attributes:
        rows: Feasible rows to be scored, ascending.
        num_evaluated: Nodes that count as filtered.
        filtered: All that Filter found out.
        next_start_row: Where the next search starts.
        via_nomination: Whether the pod's nominated node was taken without looking further.
        failed_nomination: The row of the nominated node and why the pod does not fit there; None
            if it has none, or takes it.
        extender_scores: ``int64[rows]``, what extenders add to the totals; None if none has a say.
    """

    rows: Int64Array
    num_evaluated: int
    filtered: FilterResult
    next_start_row: int
    via_nomination: bool = False
    failed_nomination: tuple[int, Status] | None = None
    extender_scores: Int64Array | None = None


def find_feasible_nodes(
    framework: Framework,
    snapshot: Snapshot,
    pod: PodInfo,
    state: CycleState,
    pre_filtered: PreFilterOutcome,
    search: NodeSearch,
) -> FeasibleNodes:
    """Filter the pod's nominated node first, then all nodes that PreFilter left.

    Raises:
        PluginFailed: A Filter plugin failed.
    """
    failed_nomination: tuple[int, Status] | None = None
    if pod.nominated_node_name and not _is_rejected(pod.nominated_node_name, search):
        tried = _nominated_node(framework, snapshot, pod, state, search)
        if isinstance(tried, FeasibleNodes):
            return tried
        failed_nomination = tried
    filtered = framework.run_filter(state, pod, snapshot, pre_filtered.node_names, search.nominated)
    rows = filtered.rows
    want = num_feasible_nodes_to_find(search.percentage, filtered.num_evaluated)
    if len(rows) <= want:
        return FeasibleNodes(
            rows,
            filtered.num_evaluated,
            filtered,
            search.start_row,
            failed_nomination=failed_nomination,
        )
    return _limited(filtered, want, search.start_row)


def num_feasible_nodes_to_find(percentage: int | None, num_nodes: int) -> int:
    """How many feasible nodes are enough: at least 100, all of them without a percentage."""
    if not percentage or percentage >= 100 or num_nodes < MIN_FEASIBLE_NODES_TO_FIND:
        return num_nodes
    return max(num_nodes * percentage // 100, MIN_FEASIBLE_NODES_TO_FIND)


def _is_rejected(node_name: str, search: NodeSearch) -> bool:
    return search.consulted is not None and search.consulted.has_rejected(node_name)


def _nominated_node(
    framework: Framework, snapshot: Snapshot, pod: PodInfo, state: CycleState, search: NodeSearch
) -> FeasibleNodes | tuple[int, Status] | None:
    """The nominated node if the pod fits there, else why not; None if there is no such node."""
    row = snapshot.row_of(pod.nominated_node_name)
    if row is None:
        return None
    name = frozenset((pod.nominated_node_name,))
    filtered = framework.run_filter(state, pod, snapshot, name, search.nominated)
    if not len(filtered.rows):
        return row, filtered.status(row)
    return FeasibleNodes(filtered.rows, 1, filtered, search.start_row, via_nomination=True)


def _limited(filtered: FilterResult, want: int, start_row: int) -> FeasibleNodes:
    """The first `want` feasible rows from `start_row` on, wrapping around."""
    rows = filtered.rows
    turned = np.roll(rows, -int(np.searchsorted(rows, start_row)))[:want]
    last = int(turned[-1])
    exists = filtered.asked.snapshot.exists
    passed = np.arange(len(exists))
    inside = (
        (passed >= start_row) & (passed <= last)
        if last >= start_row
        else (passed >= start_row) | (passed <= last)
    )
    evaluated = int(np.count_nonzero(exists & inside))
    return FeasibleNodes(np.sort(turned), evaluated, filtered, (last + 1) % len(exists))
