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
    """Tries a pod on nodes from which pods are taken away; for one cycle.

    Attributes:
        nominated: Gives the nominated pods that count beside the pod, by row.
        choose: Gives an index below its argument.
        answers: What has been asked of sorts of pods.
    """

    row_filter: RowFilter
    pod: PodInfo
    nominated: Callable[[Snapshot], AddedPods]
    choose: Callable[[int], int]
    answers: VariantValues = msgspec.field(default_factory=VariantValues)

    def on(self, snapshot: Snapshot, rows: Int64Array) -> RowTrial:
        """Begin with `rows` as they are."""
        what_if = RowWhatIf(snapshot, rows, self.pod.pod_class.host_ports, self.answers)
        return RowTrial(self.row_filter, what_if, self.nominated(snapshot))


class RowTrial:
    """Some rows on which the pod is tried, with the pods nominated to them and without.

    Attributes:
        what_if: The rows; take pods off and put them back here.
    """

    def __init__(self, row_filter: RowFilter, what_if: RowWhatIf, nominated: AddedPods) -> None:
        self.what_if = what_if
        self._row_filter = row_filter
        self._others = NO_ADDED_PODS
        if len(nominated):
            self._others = nominated.at(what_if.rows, what_if.snapshot.num_rows)
        self._has_others = self._others.present(len(what_if))

    def judge(self, positions: Int64Array) -> Judgement:
        """Which of these nodes take the pod now, and why the others do not."""
        verdicts = self._row_filter.judge(self.what_if, positions)
        fits = verdicts.feasible()
        places, added = self._with_nominated(positions)
        if not len(places):
            return Judgement(fits, verdicts)
        with_others = self._row_filter.judge(self.what_if, positions[places], added)
        refused = ~with_others.feasible()
        fits[places] &= ~refused
        return Judgement(fits, verdicts, with_others, places, refused)

    def fits(self, positions: Int64Array) -> BoolArray:
        """``bool[positions]``: which of these nodes, all of which took the pod before, still do."""
        fits = self._row_filter.accepts(self.what_if, positions)
        places, added = self._with_nominated(positions)
        if len(places):
            fits[places] &= self._row_filter.accepts(self.what_if, positions[places], added)
        return fits

    def _with_nominated(self, positions: Int64Array) -> tuple[Int64Array, AddedPods]:
        """The places in `positions` that pods are nominated to, and these."""
        if not len(self._others):
            return _NO_PLACES, NO_ADDED_PODS
        places = np.flatnonzero(self._has_others[positions])
        if not len(places):
            return _NO_PLACES, NO_ADDED_PODS
        return places, self._others.at(positions[places], len(self.what_if))


_NO_PLACES: Int64Array = np.empty(0, dtype=np.int64)


class Judgement(msgspec.Struct, frozen=True):
    """Which nodes of a trial take the pod.

    Attributes:
        fits: ``bool[nodes]``.
        verdicts: What the plugins say of the nodes without nominated pods.
        with_others: The same of those with nominated pods, with them; None if there are none.
        places: Where in the trial these nodes are.
        refused: ``bool[places]``, which of them do not take the pod so.
    """

    fits: BoolArray
    verdicts: NodeVerdicts
    with_others: NodeVerdicts | None = None
    places: Int64Array = msgspec.field(default_factory=lambda: _NO_PLACES)
    refused: BoolArray = msgspec.field(default_factory=lambda: np.empty(0, dtype=np.bool_))

    def count_reasons(self) -> tuple[Counter[str], set[str]]:
        """Why the others do not, with the number of nodes, and the plugins that say so."""
        alone = ~self.fits
        alone[self.places[self.refused]] = False
        counts, plugins = self.verdicts.count_reasons(alone)
        if self.with_others is not None:
            more_counts, more_plugins = self.with_others.count_reasons(self.refused)
            counts += more_counts
            plugins |= more_plugins
        return counts, plugins
