"""The outcome of filtering: which rows are feasible and, on demand, why the others are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from stowage.api.status import SUCCESS, Code, Status
from stowage.framework.node_verdicts import NodeVerdicts
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.state.snapshot import NodeView


class FilterResult:
    """Feasible rows, and the reasons for the rest if somebody wants to know.

    Reasons are worked out from the snapshot when first asked for: ask within the cycle, before
    the pod is assumed.

    Args:
        feasible: ``bool[rows]``; not to be written.
        asked: The nodes that were filtered: all, or those PreFilter left.
        judge: Gives every plugin's answer about `asked`.
        overruled: Rows judged by extenders, and what came of it.
        rows: The feasible rows, if known already.
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
        rows: Int64Array | None = None,
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
        if self._rows is None:
            self._rows = np.flatnonzero(self.feasible)
        return self._rows

    @property
    def num_evaluated(self) -> int:
        """How many existing nodes were filtered."""
        if self._num_evaluated < 0:
            asked = self.asked
            whole = len(asked) == asked.snapshot.num_rows
            exist = asked.snapshot.num_nodes if whole else np.count_nonzero(asked.exists)
            self._num_evaluated = int(exist)
        return self._num_evaluated

    @property
    def verdicts(self) -> NodeVerdicts:
        """Every plugin's answer about the nodes in `asked`, nominated pods not counted in.

        Raises:
            PluginFailed: A plugin failed at giving its reasons.
        """
        if self._verdicts is None:
            self._verdicts = self._judge()
        return self._verdicts

    @property
    def with_nominated_pods(self) -> NodeVerdicts | None:
        """Every plugin's answer about the nodes with nominated pods that count, these counted in.

        What rejects such a node so comes before what rejects it without them; None if there are
        no such nodes.
        """
        if self._with_nominated is None and self._judge_with_nominated is not None:
            self._with_nominated = self._judge_with_nominated()
        return self._with_nominated

    def with_nominated(
        self, feasible: BoolArray, judge: Callable[[], NodeVerdicts]
    ) -> FilterResult:
        """The same, with nominated pods counted in.

        Args:
            feasible: ``bool[rows]``, what is feasible with them as well.
            judge: Gives every plugin's answer with them, if somebody wants to know reasons.
        """
        rows = self._rows if feasible is self.feasible else None
        result = FilterResult(feasible, self.asked, lambda: self.verdicts, self.overruled, rows)
        result._judge_with_nominated = judge
        return result

    def with_overruled(self, overruled: dict[int, Status]) -> FilterResult:
        """The same, but for rows where extenders made a difference."""
        feasible = self.feasible.copy()
        for row, status in overruled.items():
            feasible[row] = status.is_success
        merged = {**self.overruled, **overruled}
        result = FilterResult(feasible, self.asked, lambda: self.verdicts, merged)
        if self._judge_with_nominated is not None:
            result._judge_with_nominated = lambda: self.with_nominated_pods  # type: ignore[assignment]
        return result

    def status(self, row: int) -> Status:
        """The deciding status of a row among those asked."""
        if row in self.overruled:
            return self.overruled[row]
        if self.feasible[row]:
            return SUCCESS
        counted_in = self.with_nominated_pods
        if counted_in is not None:
            place = int(np.searchsorted(counted_in.view.rows, row))
            if place < len(counted_in.view) and int(counted_in.view.rows[place]) == row:
                status = counted_in.status(place)
                if not status.is_success:
                    return status
        return self.verdicts.status(self.position(row))

    def position(self, row: int) -> int:
        """Where in `asked` a row stands."""
        if len(self.asked) == self.asked.snapshot.num_rows:
            return row
        return int(np.searchsorted(self.asked.rows, row))

    def _positions(self, rows: Int64Array) -> Int64Array:
        """The same of many rows."""
        if len(self.asked) == self.asked.snapshot.num_rows:
            return rows
        return np.searchsorted(self.asked.rows, rows)

    def resolvable(self) -> BoolArray:
        """``bool[rows]``: rejected nodes that removing pods may help."""
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
        """Why nodes were rejected, with their number, and by which plugins, overruled or not."""
        asked = self.asked.exists.copy()
        asked[self._positions(np.array(list(self.overruled), dtype=np.int64))] = False
        counts: Counter[str] = Counter()
        plugins: set[str] = set()
        counted_in = self.with_nominated_pods
        if counted_in is not None:
            places = self._positions(counted_in.view.rows)
            decided = ~counted_in.feasible() & asked[places]
            counts, plugins = counted_in.count_reasons(decided)
            asked[places] &= ~decided
        more_counts, more_plugins = self.verdicts.count_reasons(asked)
        counts += more_counts
        for status in self.overruled.values():
            counts.update(status.reasons)
        return counts, plugins | more_plugins | {each.plugin for each in self.overruled.values()}
