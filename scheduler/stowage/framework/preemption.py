"""Results of preemption that a PostFilter plugin leaves for the engine, and extenders' reviews."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from stowage.state.pods.pod_info import PodInfo


class Candidate(msgspec.Struct, frozen=True):
    """A node that the preemptor fits once its victims are gone.

    Attributes:
        node_name: The node.
        victims: The pods to evict, most important first.
        num_violations: Number of victims whose eviction violates a disruption budget.
    """

    node_name: str
    victims: tuple[PodInfo, ...]
    num_violations: int


class Preemption(msgspec.Struct, frozen=True):
    """The result of preemption for a pod; a plugin leaves it in the cycle's state.

    Attributes:
        chosen: The chosen candidate; None if there is none.
        find_candidates: Returns all candidates by node name, while the snapshot is current.
        tied: The equally good nodes, in the order of their names.
        awaited: UID of a terminating victim that the pod waits for; empty for none.
        refused_by: The plugins that rejected the pod on nodes without any pods of lower priority;
            events that these plugins wait for may help the pod.
    """

    chosen: Candidate | None = None
    find_candidates: Callable[[], Mapping[str, Candidate]] = dict
    tied: tuple[str, ...] = ()
    awaited: str = ""
    refused_by: frozenset[str] = frozenset()


class PreemptionBarred(msgspec.Struct, frozen=True):
    """The pod must not preempt in this cycle; the engine leaves this in the cycle's state.

    Attributes:
        reason: Why not.
    """

    reason: str


class ReviewedVictims(msgspec.Struct, frozen=True):
    """The victims on one node after the review by extenders."""

    uids: tuple[str, ...]
    num_violations: int


class VictimReview(msgspec.Struct, frozen=True):
    """The candidates after the review by extenders; it replaces a new dry run.

    Attributes:
        by_node: The candidates that are left.
        error: Why the review failed; empty if it succeeded.
    """

    by_node: Mapping[str, ReviewedVictims]
    error: str = ""
