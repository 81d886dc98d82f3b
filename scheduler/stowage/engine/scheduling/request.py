"""The input of one scheduling decision."""

from __future__ import annotations

import msgspec

from stowage.api.config.types import Percentage
from stowage.engine.scheduling.extender_answers import ExtenderAnswers
from stowage.engine.scheduling.tie_breaker import TieBreaker
from stowage.framework import (
    NO_NOMINATIONS,
    CycleState,
    Framework,
    Nominations,
    PreparedCycle,
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
            feasible. None and 0 search all nodes, ``adaptive`` a share that shrinks with the
            number of nodes.
        start: The position in the search order at which a limited search begins, at least 0; it
            may be beyond the last node. ``nextStartNodeIndex`` of v1.36.
        takes_first: Whether the search ends at the first node that the pod fits on, because nothing
            rates nodes.
        turn: The number of pods of the profile that were placed by scores before this one.
        extender_answers: None if no extender filters or prioritizes nodes for this pod.
        reviews_victims: Whether an extender processes preemption for this pod.
        victim_review: The extenders' answer about the victims; None before they have answered.
        before: What PreFilter and PreScore left for a pod of the same class that has just been
            placed; None if there is none.
        runs_post_filter: Whether PostFilter runs if no node fits.
        node_names: The only nodes that exist for this pod; None for all. It is for pod groups in
            one topology domain. What plugins count over all nodes they count over the cluster.
    """

    framework: Framework
    snapshot: Snapshot
    pod: PodInfo
    cycle_state: CycleState
    ties: TieBreaker
    nominated: Nominations = NO_NOMINATIONS
    percentage: Percentage | None = None
    start: int = 0
    takes_first: bool = False
    turn: int = 0
    extender_answers: ExtenderAnswers | None = None
    reviews_victims: bool = False
    victim_review: VictimReview | None = None
    runs_post_filter: bool = True
    node_names: frozenset[str] | None = None
    before: PreparedCycle | None = None

    @property
    def num_nodes(self) -> int:
        """The number of nodes that exist for this pod."""
        return self.snapshot.num_nodes if self.node_names is None else len(self.node_names)

    def has_node(self, name: str) -> bool:
        """Whether a node exists for this pod."""
        return self.node_names is None or name in self.node_names

    def nodes_left_by(self, pre_filter: frozenset[str] | None) -> frozenset[str] | None:
        """The nodes to filter, given those that PreFilter left; None for all."""
        if self.node_names is None or pre_filter is None:
            return pre_filter if self.node_names is None else self.node_names
        return self.node_names & pre_filter

    @property
    def involves_extenders(self) -> bool:
        """Whether an extender takes part in this decision."""
        return self.extender_answers is not None or self.reviews_victims
