"""Answers of all Filter plugins about nodes; the first plugin that rejects a node decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from stowage.api.status import SUCCESS, Code, Status, error
from stowage.framework.verdict import BoolArray, FilterErrors, FilterVerdict
from stowage.state.snapshot import NodeView


class PluginVerdict(msgspec.Struct, frozen=True):
    """One Filter plugin's answer about all nodes of a view."""

    plugin: str
    verdict: FilterVerdict

    def status(self, position: int) -> Status:
        """The plugin's status for the node at `position` in the view."""
        errors = self.verdict.errors
        if errors is not None and errors.mask[position]:
            return error(errors.text(position), plugin=self.plugin)
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
    """The answers of all Filter plugins that ran, in their order, about the nodes of `view`.

    Attributes:
        view: The nodes.
        answers: The answers.
        counts_all: Whether each plugin that rejects a node counts, as with
            ``alwaysCheckAllPredicates`` of v1.12; otherwise the first one counts.
    """

    view: NodeView
    answers: Sequence[PluginVerdict]
    counts_all: bool = False

    def feasible(self) -> BoolArray:
        """``bool[len(view)]``: existing nodes that no plugin rejects."""
        feasible = self.view.exists.copy()
        for answer in self.answers:
            if not answer.verdict.accepts_all:
                feasible &= ~answer.verdict.rejected(len(feasible))
        return feasible

    def status(self, position: int) -> Status:
        """The status of the node at `position`: that of the first plugin that rejects it.

        With `counts_all` it has the reasons of all plugins that reject the node.
        """
        rejections = (each.status(position) for each in self.answers)
        refused = (status for status in rejections if not status.is_success)
        if not self.counts_all:
            return next(refused, SUCCESS)
        return _joined(list(refused))

    def count_reasons(self, asked: BoolArray) -> tuple[Counter[str], set[str]]:
        """Reasons with the number of rejected nodes, and the plugins that decided rejections.

        Args:
            asked: ``bool[len(view)]``, the nodes to count. A node counts for each reason of its
                first rejecting plugin, with `counts_all` of all plugins that reject it.
        """
        counts: Counter[str] = Counter()
        plugins = set()
        for answer, decided in self._counted(asked):
            plugins.add(answer.plugin)
            for rejection in answer.verdict.rejections:
                count = int(np.count_nonzero(rejection.mask & decided))
                if count:
                    counts[rejection.reason] += count
        return counts, plugins

    def resolvable(self) -> BoolArray:
        """``bool[len(view)]``: rejected nodes on which preemption may help."""
        rejected = np.zeros(len(self.view), dtype=np.bool_)
        unresolvable = np.zeros(len(self.view), dtype=np.bool_)
        for answer, counted in self._counted(self.view.exists):
            rejected |= counted
            unresolvable |= counted & answer.verdict.unresolvable(len(counted))
        return rejected & ~unresolvable

    def decided_by(self, plugin: str) -> BoolArray:
        """``bool[len(view)]``: the existing nodes that a plugin is the first to reject."""
        for answer, decided in self._decided(self.view.exists):
            if answer.plugin == plugin:
                return decided
        return np.zeros(len(self.view), dtype=np.bool_)

    def first_error(self) -> tuple[str, str] | None:
        """(plugin, text) of the first node for which a plugin fails, none before it rejecting it.

        None if there is no such node.
        """
        first = min(self._failures(self.view.exists), default=None, key=lambda each: each[0][0])
        if first is None:
            return None
        positions, plugin, errors = first
        return plugin, errors.text(positions[0])

    def errors(self, asked: BoolArray) -> Iterator[tuple[str, str]]:
        """(plugin, text) for each node of `asked` that a plugin fails for, none rejecting before.

        Args:
            asked: ``bool[len(view)]``.
        """
        for positions, plugin, errors in self._failures(asked):
            for at in positions:
                yield plugin, errors.text(at)

    def _failures(self, asked: BoolArray) -> Iterator[tuple[list[int], str, FilterErrors]]:
        """The plugins that fail, with the positions of the nodes (at least one) they fail for."""
        for answer, decided in self._decided(asked):
            errors = answer.verdict.errors
            positions = [] if errors is None else np.flatnonzero(decided & errors.mask).tolist()
            if errors is not None and positions:
                yield positions, answer.plugin, errors

    def _counted(self, asked: BoolArray) -> Iterator[tuple[PluginVerdict, BoolArray]]:
        """Per plugin, the nodes that count as rejected by it."""
        if not self.counts_all:
            yield from self._decided(asked)
            return
        for answer in self.answers:
            if not answer.verdict.accepts_all:
                rejected = answer.verdict.rejected(len(asked)) & asked
                if np.count_nonzero(rejected):
                    yield answer, rejected

    def _decided(self, asked: BoolArray) -> Iterator[tuple[PluginVerdict, BoolArray]]:
        """Per plugin, the nodes that it is the first to reject."""
        open_nodes = asked.copy()
        for answer in self.answers:
            if answer.verdict.accepts_all:
                continue
            decided = answer.verdict.rejected(len(open_nodes)) & open_nodes
            if np.count_nonzero(decided):
                yield answer, decided
                open_nodes &= ~decided


def _joined(rejections: Sequence[Status]) -> Status:
    """One status with the reasons of all; it names the first plugin."""
    if len(rejections) < 2:
        return rejections[0] if rejections else SUCCESS
    codes = [each.code for each in rejections]
    unresolvable = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    code = unresolvable if unresolvable in codes else codes[0]
    reasons = tuple(reason for each in rejections for reason in each.reasons)
    return Status(code, reasons, rejections[0].plugin)
