"""Filter: the nodes that a pod fits on."""

from __future__ import annotations

import msgspec
import numpy as np

from stowage.api.config.types import Percentage
from stowage.api.status import Status
from stowage.engine.scheduling.request import SchedulingRequest
from stowage.framework import FilterResult, PreFilterOutcome
from stowage.framework.verdict import Int64Array

MIN_FEASIBLE_NODES_TO_FIND = 100
MIN_ADAPTIVE_PERCENTAGE = 5


class FeasibleNodes(msgspec.Struct, frozen=True):
    """The outcome of Filter.

    Attributes:
        rows: The feasible rows that are scored, ascending.
        num_evaluated: The number of nodes that count as filtered.
        filtered: The complete result of the Filter plugins.
        via_nomination: Whether the pod fits on its nominated node, so that no other was searched.
        first_fit: Whether the pod fits on other nodes, too, and the first one is taken.
        failed_nomination: The row of the nominated node and the reason why the pod does not fit
            there; None if the pod has no nominated node or fits on it.
        extender_scores: ``int64[rows]``, added to the totals; None if no extender prioritizes.
    """

    rows: Int64Array
    num_evaluated: int
    filtered: FilterResult
    via_nomination: bool = False
    failed_nomination: tuple[int, Status] | None = None
    extender_scores: Int64Array | None = None
    first_fit: bool = False


def find_nodes_that_fit_pod(
    request: SchedulingRequest, pre_filtered: PreFilterOutcome
) -> FeasibleNodes:
    """Filter the nominated node, then all nodes that PreFilter left.

    ``findNodesThatFitPod`` of v1.36 without the extenders.

    Raises:
        PluginFailed: A Filter plugin failed.
    """
    pod = request.pod
    failed_nomination: tuple[int, Status] | None = None
    if pod.nominated_node_name and not _is_rejected_by_extender(request):
        evaluated = _evaluate_nominated_node(request)
        if isinstance(evaluated, FeasibleNodes):
            return evaluated
        failed_nomination = evaluated
    filtered = request.framework.run_filter(
        request.cycle_state,
        pod,
        request.snapshot,
        request.nodes_left_by(pre_filtered.node_names),
        request.nominated,
    )
    rows = filtered.rows
    wanted = num_feasible_nodes_to_find(request.percentage, filtered.num_evaluated)
    if request.takes_first:
        wanted = 1
    num_evaluated = filtered.num_evaluated
    is_limited = len(rows) > wanted
    if is_limited:
        rows, num_evaluated = _first_feasible(filtered, wanted, request.start)
    return FeasibleNodes(
        rows,
        num_evaluated,
        filtered,
        failed_nomination=failed_nomination,
        first_fit=is_limited and request.takes_first,
    )


def num_feasible_nodes_to_find(percentage: Percentage | None, num_nodes: int) -> int:
    """The number of feasible nodes that end a search: at least 100; all without a percentage.

    ``numFeasibleNodesToFind`` of v1.36, where 0 stands for ``adaptive``.
    """
    if percentage == "adaptive":
        percentage = max(50 - num_nodes // 125, MIN_ADAPTIVE_PERCENTAGE)
    if not percentage or percentage >= 100 or num_nodes < MIN_FEASIBLE_NODES_TO_FIND:
        return num_nodes
    return max(num_nodes * percentage // 100, MIN_FEASIBLE_NODES_TO_FIND)


def _is_rejected_by_extender(request: SchedulingRequest) -> bool:
    answers = request.extender_answers
    return answers is not None and answers.has_rejected(request.pod.nominated_node_name)


def _evaluate_nominated_node(
    request: SchedulingRequest,
) -> FeasibleNodes | tuple[int, Status] | None:
    """The nominated node if the pod fits there, else its row and the reason; None if unknown."""
    pod, snapshot = request.pod, request.snapshot
    row = snapshot.row_of(pod.nominated_node_name)
    if row is None or not request.has_node(pod.nominated_node_name):
        return None
    name = frozenset((pod.nominated_node_name,))
    filtered = request.framework.run_filter(
        request.cycle_state, pod, snapshot, name, request.nominated
    )
    if not len(filtered.rows):
        return row, filtered.status(row)
    return FeasibleNodes(filtered.rows, 1, filtered, via_nomination=True)


def _first_feasible(filtered: FilterResult, wanted: int, start: int) -> tuple[Int64Array, int]:
    """The first `wanted` feasible rows, ascending, and the number of nodes before the next one.

    With ``parallelism: 1``, kube-scheduler stops at the next feasible node, and begins its next
    search there. With more, other nodes count as well, as chance has it.

    Args:
        filtered: The result about all nodes that were asked, more than `wanted` of them feasible.
        wanted: At least 1.
        start: The position in the search order of the node to begin with; the search wraps around.
    """
    asked = filtered.asked
    order = asked.snapshot.search_order.rows
    if len(asked) != asked.snapshot.num_rows:
        order = order[np.isin(order, asked.rows, assume_unique=True)]
    order = np.roll(order, -(start % len(order)))
    places = np.flatnonzero(filtered.feasible[order])
    return np.sort(order[places[:wanted]]), int(places[wanted])
