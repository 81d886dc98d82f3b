"""Tries a pod on nodes from which pods are removed, for a PostFilter plugin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec
import numpy as np

from stowage.framework.node_verdicts import NodeVerdicts
from stowage.framework.runtime.row_filter import RowFilter
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot
from stowage.state.what_if.added_pods import NO_ADDED_PODS, AddedPods
from stowage.state.what_if.removed_pods import VariantValues
from stowage.state.what_if.row_local import RowWhatIf


class DryRun(msgspec.Struct, frozen=True):
    """Tries a pod on nodes from which pods are removed; valid for one cycle.

    Attributes:
        row_filter: The Filter plugins of the cycle.
        pod: The pod being scheduled.
        nominated: Returns the nominated pods that count for the pod, by row.
        choose: Returns an index below its argument.
        answers: Values computed per variant of pods, shared by all trials.
    """

    row_filter: RowFilter
    pod: PodInfo
    nominated: Callable[[Snapshot], AddedPods]
    choose: Callable[[int], int]
    answers: VariantValues = msgspec.field(default_factory=VariantValues)

    def on(self, snapshot: Snapshot, rows: Int64Array) -> RowTrial:
        """A trial on `rows`, with no pods removed yet."""
        what_if = RowWhatIf(snapshot, rows, self.pod.pod_class.host_ports, self.answers)
        return RowTrial(self.row_filter, what_if, self.nominated(snapshot))


class RowTrial:
    """A trial of the pod on some rows, with and without the pods nominated to them.

    Attributes:
        what_if: The rows; remove pods and put them back here.
    """

    def __init__(self, row_filter: RowFilter, what_if: RowWhatIf, nominated: AddedPods) -> None:
        self.what_if = what_if
        self._row_filter = row_filter
        self._others = NO_ADDED_PODS
        if len(nominated):
            self._others = nominated.at(what_if.rows, what_if.snapshot.num_rows)
        self._has_others = self._others.present(len(what_if))

    def judge(self, positions: Int64Array) -> Judgement:
        """Filter the nodes at `positions`, with reasons."""
        verdicts = self._row_filter.judge(self.what_if, positions)
        fits = verdicts.feasible()
        indexes, added = self._with_nominated(positions)
        if not len(indexes):
            return Judgement(fits, verdicts)
        with_others = self._row_filter.judge(self.what_if, positions[indexes], added)
        refused = ~with_others.feasible()
        fits[indexes] &= ~refused
        return Judgement(fits, verdicts, with_others, indexes, refused)

    def fits(self, positions: Int64Array) -> BoolArray:
        """``bool[positions]``: the nodes that the pod still fits; it fitted all before."""
        fits = self._row_filter.accepts(self.what_if, positions)
        indexes, added = self._with_nominated(positions)
        if len(indexes):
            fits[indexes] &= self._row_filter.accepts(self.what_if, positions[indexes], added)
        return fits

    def _with_nominated(self, positions: Int64Array) -> tuple[Int64Array, AddedPods]:
        """The indexes in `positions` of nodes with nominated pods, and those pods."""
        if not len(self._others):
            return _NO_INDEXES, NO_ADDED_PODS
        indexes = np.flatnonzero(self._has_others[positions])
        if not len(indexes):
            return _NO_INDEXES, NO_ADDED_PODS
        return indexes, self._others.at(positions[indexes], len(self.what_if))


_NO_INDEXES: Int64Array = np.empty(0, dtype=np.int64)


class Judgement(msgspec.Struct, frozen=True):
    """The answers about some nodes of a trial.

    Attributes:
        fits: ``bool[nodes]``: the nodes that the pod fits.
        verdicts: The plugins' answers without nominated pods.
        with_others: The answers about nodes with nominated pods, these counted; None if no pods
            are nominated.
        indexes: The indexes of the nodes of `with_others` among all nodes.
        refused: ``bool[indexes]``: the nodes that are rejected with nominated pods.
    """

    fits: BoolArray
    verdicts: NodeVerdicts
    with_others: NodeVerdicts | None = None
    indexes: Int64Array = msgspec.field(default_factory=lambda: _NO_INDEXES)
    refused: BoolArray = msgspec.field(default_factory=lambda: np.empty(0, dtype=np.bool_))

    def count_reasons(self) -> tuple[Counter[str], set[str]]:
        """Reasons with the number of rejected nodes, and the rejecting plugins."""
        counts, plugins = self.verdicts.count_reasons(self._refused_alone())
        if self.with_others is not None:
            more_counts, more_plugins = self.with_others.count_reasons(self.refused)
            counts += more_counts
            plugins |= more_plugins
        return counts, plugins

    def errors(self) -> list[str]:
        """The errors of plugins, in kube-scheduler's words; one for each node they failed for."""
        found = list(self.verdicts.errors(self._refused_alone()))
        if self.with_others is not None:
            found += self.with_others.errors(self.refused)
        return [f'running "{plugin}" filter plugin: {text}' for plugin, text in found]

    def _refused_alone(self) -> BoolArray:
        """``bool[nodes]``: the nodes that are rejected without nominated pods, too."""
        alone = ~self.fits
        alone[self.indexes[self.refused]] = False
        return alone
