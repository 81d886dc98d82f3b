"""What a PostFilter plugin makes room with, and what it leaves for the engine to carry out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scheduler.api.status import Status
from scheduler.framework.node_verdicts import NodeVerdicts
from scheduler.framework.nominated import Nominations, nominated_on
from scheduler.framework.row_filter import RowFilter, first_statuses
from scheduler.framework.verdict import BoolArray, Int64Array
from scheduler.state.pod_info import PodInfo
from scheduler.state.row_what_if import RowWhatIf
from scheduler.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node on which the preemptor fits once some pods are gone.

    Attributes:
        victims: The pods that have to go, most important first.
        num_violations: How many of them a disruption budget does not allow to go.
    """

    node_name: str
    victims: tuple[PodInfo, ...]
    num_violations: int


@dataclass(frozen=True, slots=True)
class Preemption:
    """What came of trying to make room for a pod; left in the cycle's state.

    Attributes:
        chosen: Where room is to be made; None if nowhere.
        find_candidates: Gives all candidates, by node name; as long as the snapshot is current.
        tied: The nodes that were equally good, in the order of their names.
    """

    chosen: Candidate | None = None
    find_candidates: Callable[[], Mapping[str, Candidate]] = dict
    tied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReviewedVictims:
    """The victims that extenders leave, or put, on one node."""

    uids: tuple[str, ...]
    num_violations: int


@dataclass(frozen=True, slots=True)
class VictimReview:
    """What extenders made of the candidates; it takes the place of a dry run.

    Attributes:
        by_node: The candidates that are left.
        error: Why there is no answer; empty if there is one.
    """

    by_node: Mapping[str, ReviewedVictims]
    error: str = ""


@dataclass(frozen=True, slots=True)
class DryRun:
    """Tries a pod on nodes from which pods are taken away; for one cycle.

    Attributes:
        choose: Gives an index below its argument.
    """

    row_filter: RowFilter
    pod: PodInfo
    nominated: Nominations
    choose: Callable[[int], int]

    def on(self, snapshot: Snapshot, rows: Int64Array) -> RowTrial:
        """Begin with `rows` as they are."""
        return RowTrial(self, RowWhatIf(snapshot, rows, self.pod.pod_class.host_ports))


class RowTrial:
    """Some rows on which the pod is tried, with the pods nominated to them and without.

    Attributes:
        what_if: The rows; take pods off and put them back here.
    """

    def __init__(self, dry_run: DryRun, what_if: RowWhatIf) -> None:
        self.what_if = what_if
        self._dry_run = dry_run

    def judge(self, positions: Int64Array) -> Judgement:
        """Which of these nodes take the pod now, and why the others do not."""
        row_filter = self._dry_run.row_filter
        verdicts = row_filter.judge(self.what_if, positions)
        fits = verdicts.feasible()
        overruled: dict[int, Status] = {}
        places, added = self._with_nominated(positions)
        if len(places):
            with_others = row_filter.judge(self.what_if, positions[places], added)
            for place, status in first_statuses(with_others, range(len(places))).items():
                overruled[int(places[place])] = status
            fits[list(overruled)] = False
        return Judgement(fits, verdicts, overruled)

    def fits(self, positions: Int64Array) -> BoolArray:
        """``bool[positions]``: which of these nodes, all of which took the pod before, still do."""
        row_filter = self._dry_run.row_filter
        fits = row_filter.accepts(self.what_if, positions)
        places, added = self._with_nominated(positions)
        if len(places):
            fits[places] &= row_filter.accepts(self.what_if, positions[places], added)
        return fits

    def _with_nominated(self, positions: Int64Array) -> tuple[Int64Array, list[list[PodInfo]]]:
        """The places in `positions` that pods are nominated to, and these."""
        if not self._others:
            return _NO_PLACES, []
        rows = self.what_if.rows[positions].tolist()
        places = [place for place, row in enumerate(rows) if row in self._others]
        return np.array(places, dtype=np.int64), [self._others[rows[place]] for place in places]

    @cached_property
    def _others(self) -> dict[int, list[PodInfo]]:
        dry_run = self._dry_run
        rows, snapshot = self.what_if.rows, self.what_if.snapshot
        return nominated_on(rows, snapshot, dry_run.pod, dry_run.nominated)


_NO_PLACES: Int64Array = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Which nodes of a trial take the pod.

    Attributes:
        fits: ``bool[nodes]``.
    """

    fits: BoolArray
    verdicts: NodeVerdicts
    overruled: Mapping[int, Status]

    def count_reasons(self) -> Counter[str]:
        """Why the others do not, with the number of nodes."""
        counts, _ = self.verdicts.count_reasons(~self.fits & self._alone())
        for status in self.overruled.values():
            counts.update(status.reasons)
        return counts

    def _alone(self) -> BoolArray:
        alone = np.ones(len(self.fits), dtype=np.bool_)
        alone[list(self.overruled)] = False
        return alone
