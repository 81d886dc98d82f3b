"""The input of one scheduling decision."""

from __future__ import annotations

import msgspec

from stowage.engine.scheduling.extender_answers import ExtenderAnswers
from stowage.engine.scheduling.tie_breaker import TieBreaker
from stowage.framework import (
    NO_NOMINATIONS,
    CycleState,
    Framework,
    Nominations,
    VictimReview,
)
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot


class SchedulingRequest(msgspec.Struct, frozen=True):
    """One pod, one snapshot of the cluster, and the rules of the search.

    A msgspec struct, because one is made for every pod and a frozen dataclass takes several times
    as long to make.

    Attributes:
        framework: The pod's profile.
        snapshot: The cluster.
        pod: The pod.
        cycle_state: Fresh; Reserve and the later extension points need it afterwards.
        ties: Picks one of several nodes with equal scores.
        nominated: The nominated pods of all nodes.
        percentage: ``percentageOfNodesToScore``: the search ends when this share of the nodes is
            feasible. None and 0 search all nodes.
        start_row: The first row of a limited search: `next_start_row` of the last result.
        extender_answers: None if no extender filters or prioritizes nodes for this pod.
        reviews_victims: Whether an extender processes preemption for this pod.
        victim_review: The extenders' answer about the victims; None before they have answered.
    """

    framework: Framework
    snapshot: Snapshot
    pod: PodInfo
    cycle_state: CycleState
    ties: TieBreaker
    nominated: Nominations = NO_NOMINATIONS
    percentage: int | None = None
    start_row: int = 0
    extender_answers: ExtenderAnswers | None = None
    reviews_victims: bool = False
    victim_review: VictimReview | None = None

    @property
    def involves_extenders(self) -> bool:
        """Whether an extender takes part in this decision."""
        return self.extender_answers is not None or self.reviews_victims
