"""Answers of all Filter plugins about nodes; the first plugin that rejects a node decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from stowage.api.status import SUCCESS, Code, Status
from stowage.framework.verdict import BoolArray, FilterVerdict
from stowage.state.snapshot import NodeView


class PluginVerdict(msgspec.Struct, frozen=True):
    """One Filter plugin's answer about all nodes of a view."""

    plugin: str
    verdict: FilterVerdict

    def status(self, position: int) -> Status:
        """The plugin's status for the node at `position` in the view."""
        reasons = []
        unresolvable = False
        for rejection in self.verdict.rejections:
            if rejection.mask[position]:
                reasons.append(rejection.reason)
                flags = rejection.unresolvable
                unresolvable |= flags if isinstance(flags, bool) else bool(flags[position])
        if not reasons:
            return SUCCESS
        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if unresolvable else Code.UNSCHEDULABLE
        return Status(code, tuple(reasons), self.plugin)


class NodeVerdicts(msgspec.Struct, frozen=True):
    """The answers of all Filter plugins that ran, in their order, about the nodes of `view`."""

    view: NodeView
    answers: Sequence[PluginVerdict]

    def feasible(self) -> BoolArray:
        """``bool[len(view)]``: existing nodes that no plugin rejects."""
        feasible = self.view.exists.copy()
        for answer in self.answers:
            if not answer.verdict.accepts_all:
                feasible &= ~answer.verdict.rejected(len(feasible))
        return feasible

    def status(self, position: int) -> Status:
        """The status of the node at `position`: that of the first plugin that rejects it."""
        for answer in self.answers:
            status = answer.status(position)
            if not status.is_success:
                return status
        return SUCCESS

    def count_reasons(self, asked: BoolArray) -> tuple[Counter[str], set[str]]:
        """Reasons with the number of rejected nodes, and the plugins that decided rejections.

        Args:
            asked: ``bool[len(view)]``, the nodes to count. A node counts for each reason of its
                first rejecting plugin.
        """
        counts: Counter[str] = Counter()
        plugins = set()
        for answer, decided in self._decided(asked):
            plugins.add(answer.plugin)
            for rejection in answer.verdict.rejections:
                count = int(np.count_nonzero(rejection.mask & decided))
                if count:
                    counts[rejection.reason] += count
        return counts, plugins

    def resolvable(self) -> BoolArray:
        """``bool[len(view)]``: rejected nodes on which preemption may help."""
        resolvable = np.zeros(len(self.view), dtype=np.bool_)
        for answer, decided in self._decided(self.view.exists):
            resolvable |= decided & ~answer.verdict.unresolvable(len(decided))
        return resolvable

    def _decided(self, asked: BoolArray) -> Iterator[tuple[PluginVerdict, BoolArray]]:
        """Per plugin, the nodes that it is the first to reject."""
        open_nodes = asked.copy()
        for answer in self.answers:
            if answer.verdict.accepts_all:
                continue
            decided = answer.verdict.rejected(len(open_nodes)) & open_nodes
            if decided.any():
                yield answer, decided
                open_nodes &= ~decided
