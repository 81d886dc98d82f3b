"""What a PostFilter plugin makes room with, and what it leaves for the engine to carry out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from stowage.state.pods.pod_info import PodInfo


class Candidate(msgspec.Struct, frozen=True):
    """A node on which the preemptor fits once some pods are gone.

    Attributes:
        victims: The pods that have to go, most important first.
        num_violations: How many of them a disruption budget does not allow to go.
    """

    node_name: str
    victims: tuple[PodInfo, ...]
    num_violations: int


class Preemption(msgspec.Struct, frozen=True):
    """What came of trying to make room for a pod; left in the cycle's state.

    Attributes:
        chosen: Where room is to be made; None if nowhere.
        find_candidates: Gives all candidates, by node name; as long as the snapshot is current.
        tied: The nodes that were equally good, in the order of their names.
        awaited: UID of a terminating victim that has to be gone first; empty for none.
        refused_by: The plugins that refused the pod even where all less important pods were gone;
            what helps it there may help it as well.
    """

    chosen: Candidate | None = None
    find_candidates: Callable[[], Mapping[str, Candidate]] = dict
    tied: tuple[str, ...] = ()
    awaited: str = ""
    refused_by: frozenset[str] = frozenset()


class ReviewedVictims(msgspec.Struct, frozen=True):
    """The victims that extenders leave, or put, on one node."""

    uids: tuple[str, ...]
    num_violations: int


class VictimReview(msgspec.Struct, frozen=True):
    """What extenders made of the candidates; it takes the place of a dry run.

    Attributes:
        by_node: The candidates that are left.
        error: Why there is no answer; empty if there is one.
    """

    by_node: Mapping[str, ReviewedVictims]
    error: str = ""
