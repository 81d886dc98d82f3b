"""Outcomes of PreFilter and Filter: the nodes that are left and, on demand, why others are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec
import numpy as np

from stowage.api.status import SUCCESS, Code, Status
from stowage.framework.node_verdicts import NodeVerdicts
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.state.arrays import Rows
from stowage.state.snapshot import NodeView


class PreFilterOutcome(msgspec.Struct, frozen=True):
    """The outcome of all PreFilter plugins.

    Attributes:
        status: Success, the deciding rejection, or an error.
        node_names: The nodes left; None for all. Some may not exist.
        plugins: The plugins that left nodes out.
    """

    status: Status = SUCCESS
    node_names: frozenset[str] | None = None
    plugins: frozenset[str] = frozenset()

    @property
    def is_unlimited(self) -> bool:
        """Whether the pod was let pass on all nodes."""
        return self.status.is_success and self.node_names is None


class FilterResult:
    """The feasible rows and, on demand, the reasons why other rows were rejected.

    Reasons are computed from the snapshot at the first access, which must be within the cycle,
    before the pod is assumed.

    Args:
        feasible: ``bool[rows]``; read-only.
        asked: The nodes that were filtered: all, or those that PreFilter left.
        judge: Returns every plugin's answer about `asked`.
        overruled: The statuses of rows whose result extenders changed.
        rows: The feasible rows, if known.
    """

    __slots__ = (
        "_judge",
        "_judge_with_nominated",
        "_num_evaluated",
        "_rows",
        "_verdicts",
        "_with_nominated",
        "asked",
        "feasible",
        "overruled",
    )

    def __init__(
        self,
        feasible: BoolArray,
        asked: NodeView,
        judge: Callable[[], NodeVerdicts],
        overruled: dict[int, Status] | None = None,
        rows: Rows | None = None,
    ) -> None:
        self.feasible = feasible
        self.asked = asked
        self.overruled = overruled or {}
        self._judge_with_nominated: Callable[[], NodeVerdicts] | None = None
        self._with_nominated: NodeVerdicts | None = None
        self._judge = judge
        self._verdicts: NodeVerdicts | None = None
        self._rows = rows
        self._num_evaluated = -1

    @property
    def rows(self) -> Int64Array:
        """The feasible rows, ascending."""
        return self._found().numbers

    @property
    def runs(self) -> tuple[slice, ...] | None:
        """The runs of consecutive feasible rows, if they are few; see `Rows`."""
        return self._found().runs

    def _found(self) -> Rows:
        if self._rows is None:
            self._rows = Rows.where(self.feasible)
        return self._rows

    @property
    def num_evaluated(self) -> int:
        """Number of existing nodes that were filtered."""
        if self._num_evaluated < 0:
            asked = self.asked
            whole = len(asked) == asked.snapshot.num_rows
            exist = asked.snapshot.num_nodes if whole else np.count_nonzero(asked.exists)
            self._num_evaluated = int(exist)
        return self._num_evaluated

    @property
    def verdicts(self) -> NodeVerdicts:
        """Every plugin's answer about the nodes in `asked`, without nominated pods.

        Raises:
            PluginFailed: A plugin failed while the reasons were computed.
        """
        if self._verdicts is None:
            self._verdicts = self._judge()
        return self._verdicts

    @property
    def with_nominated_pods(self) -> NodeVerdicts | None:
        """Every plugin's answer about the nodes with nominated pods, as if those pods were placed.

        A rejection with nominated pods takes precedence over one without them. None if no nominated
        pod counts.
        """
        if self._with_nominated is None and self._judge_with_nominated is not None:
            self._with_nominated = self._judge_with_nominated()
        return self._with_nominated

    def with_nominated(
        self, feasible: BoolArray, judge: Callable[[], NodeVerdicts]
    ) -> FilterResult:
        """The same result with nominated pods counted.

        Args:
            feasible: ``bool[rows]``, the rows that are feasible with and without them.
            judge: Returns every plugin's answer with them; called on demand.
        """
        rows = self._rows if feasible is self.feasible else None
        result = FilterResult(feasible, self.asked, lambda: self.verdicts, self.overruled, rows)
        result._judge_with_nominated = judge
        return result

    def with_overruled(self, overruled: dict[int, Status]) -> FilterResult:
        """The same result with the statuses of rows that extenders changed."""
        feasible = self.feasible.copy()
        for row, status in overruled.items():
            feasible[row] = status.is_success
        merged = {**self.overruled, **overruled}
        result = FilterResult(feasible, self.asked, lambda: self.verdicts, merged)
        if self._judge_with_nominated is not None:
            result._judge_with_nominated = lambda: self.with_nominated_pods  # type: ignore[assignment]  # not a method
        return result

    def status(self, row: int) -> Status:
        """The deciding status of a row among those asked."""
        if row in self.overruled:
            return self.overruled[row]
        if self.feasible[row]:
            return SUCCESS
        counted_in = self.with_nominated_pods
        if counted_in is not None:
            position = int(np.searchsorted(counted_in.view.rows, row))
            if position < len(counted_in.view) and int(counted_in.view.rows[position]) == row:
                status = counted_in.status(position)
                if not status.is_success:
                    return status
        return self.verdicts.status(self.position(row))

    def position(self, row: int) -> int:
        """The position of a row in `asked`."""
        if len(self.asked) == self.asked.snapshot.num_rows:
            return row
        return int(np.searchsorted(self.asked.rows, row))

    def _positions(self, rows: Int64Array) -> Int64Array:
        """The positions of rows in `asked`."""
        if len(self.asked) == self.asked.snapshot.num_rows:
            return rows
        return np.searchsorted(self.asked.rows, rows)

    def resolvable(self) -> BoolArray:
        """``bool[rows]``: rejected nodes on which preemption may help."""
        resolvable = np.zeros(len(self.feasible), dtype=np.bool_)
        resolvable[self.asked.rows] = self.verdicts.resolvable()
        counted_in = self.with_nominated_pods
        if counted_in is not None:
            refused = ~counted_in.feasible()
            resolvable[counted_in.view.rows[refused]] = counted_in.resolvable()[refused]
        for row, status in self.overruled.items():
            resolvable[row] = status.code is Code.UNSCHEDULABLE
        return resolvable

    def count_reasons(self) -> tuple[Counter[str], set[str]]:
        """Reasons with node counts, and the rejecting plugins; extenders included."""
        asked = self.asked.exists.copy()
        asked[self._positions(np.array(list(self.overruled), dtype=np.int64))] = False
        counts: Counter[str] = Counter()
        plugins: set[str] = set()
        counted_in = self.with_nominated_pods
        if counted_in is not None:
            positions = self._positions(counted_in.view.rows)
            decided = ~counted_in.feasible() & asked[positions]
            counts, plugins = counted_in.count_reasons(decided)
            asked[positions] &= ~decided
        more_counts, more_plugins = self.verdicts.count_reasons(asked)
        counts += more_counts
        for status in self.overruled.values():
            counts.update(status.reasons)
        return counts, plugins | more_plugins | {each.plugin for each in self.overruled.values()}
