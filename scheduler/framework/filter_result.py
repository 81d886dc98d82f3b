"""The outcome of filtering: which rows are feasible and, on demand, why the others are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scheduler.api.status import SUCCESS, Code, Status
from scheduler.framework.node_verdicts import NodeVerdicts
from scheduler.framework.verdict import BoolArray, Int64Array
from scheduler.state.snapshot import NodeView


class FilterResult:
    """Feasible rows, and the reasons for the rest if somebody wants to know.

    Reasons are worked out from the snapshot when first asked for: ask within the cycle, before
    the pod is assumed.

    Args:
        feasible: ``bool[rows]``; not to be written.
        asked: The nodes that were filtered: all, or those PreFilter left.
        judge: Gives every plugin's answer about `asked`.
        overruled: Rows judged with nominated pods, or by extenders, and what came of it.
        rows: The feasible rows, if known already.
    """

    __slots__ = (
        "_judge",
        "_num_evaluated",
        "_overrule_rest",
        "_overruled",
        "_rows",
        "_verdicts",
        "asked",
        "feasible",
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
        self._overruled = overruled or {}
        self._overrule_rest: Callable[[], dict[int, Status]] | None = None
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
    def overruled(self) -> dict[int, Status]:
        """Rows that were judged with nominated pods, or by extenders, and what came of it."""
        if self._overrule_rest is not None:
            self._overruled = {**self._overrule_rest(), **self._overruled}
            self._overrule_rest = None
        return self._overruled

    def with_nominated(
        self, overruled: dict[int, Status], rest: Callable[[], dict[int, Status]]
    ) -> FilterResult:
        """The same, with nominated pods counted in.

        Args:
            overruled: Feasible rows that are not feasible with the pods nominated to them.
            rest: The same of rows that are not feasible anyhow, where only the reasons may differ;
                asked if somebody wants to know.
        """
        result = self.with_overruled(overruled) if overruled else self
        result.overrule_later(rest)
        return result

    def overrule_later(self, rest: Callable[[], dict[int, Status]]) -> None:
        """Ask `rest` for statuses that overrule those known when somebody wants to know."""
        self._overrule_rest = rest

    def with_overruled(self, overruled: dict[int, Status]) -> FilterResult:
        """The same, but for rows where nominated pods or extenders made a difference."""
        feasible = self.feasible.copy()
        for row, status in overruled.items():
            feasible[row] = status.is_success
        merged = {**self.overruled, **overruled}
        return FilterResult(feasible, self.asked, lambda: self.verdicts, merged)

    def status(self, row: int) -> Status:
        """The deciding status of a row among those asked."""
        if row in self.overruled:
            return self.overruled[row]
        if self.feasible[row]:
            return SUCCESS
        return self.verdicts.status(self.position(row))

    def position(self, row: int) -> int:
        """Where in `asked` a row stands."""
        if len(self.asked) == self.asked.snapshot.num_rows:
            return row
        return int(np.searchsorted(self.asked.rows, row))

    def resolvable(self) -> BoolArray:
        """``bool[rows]``: rejected nodes that removing pods may help."""
        resolvable = np.zeros(len(self.feasible), dtype=np.bool_)
        resolvable[self.asked.rows] = self.verdicts.resolvable()
        for row, status in self.overruled.items():
            resolvable[row] = status.code is Code.UNSCHEDULABLE
        return resolvable
