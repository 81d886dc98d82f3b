"""The output of one scheduling decision."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from stowage.api.decisions import BestNodes
from stowage.api.status import SUCCESS, Status
from stowage.engine.scheduling.feasible_nodes import FeasibleNodes
from stowage.engine.scheduling.node_scoring import best_nodes
from stowage.framework import BrokenTie, Candidate, Diagnosis, Preemption, ScoreResult


class Scheduled(msgspec.Struct, frozen=True):
    """The pod goes to a node; ``ScheduleResult`` of v1.36.

    Attributes:
        node_name: The node.
        evaluated_nodes: The number of nodes that were filtered.
        feasible_nodes: The number of nodes that passed.
        feasible: The search behind it; for explanations, as long as the snapshot is current.
        scores: None if only one node was feasible, which is then taken without scoring.
        chosen: The position of the node in ``feasible.rows``.
        tie: How one of several nodes with the highest total was chosen; None without a tie.
        serves_class: Whether the next pod of the class may use what PreFilter and PreScore left.
    """

    node_name: str
    evaluated_nodes: int
    feasible_nodes: int
    feasible: FeasibleNodes
    scores: ScoreResult | None = None
    chosen: int = 0
    tie: BrokenTie | None = None
    serves_class: bool = False

    def best_nodes(self) -> BestNodes | None:
        """The best nodes with their scores, before the next cycle; None if none was scored."""
        if self.scores is None:
            return None
        names = self.feasible.filtered.asked.snapshot.node_names
        return best_nodes(self.scores, self.chosen, names)

    @property
    def searched_nodes(self) -> int:
        """The number of nodes after which the next limited search begins."""
        return 0 if self.feasible.via_nomination else self.evaluated_nodes


class Unschedulable(msgspec.Struct, frozen=True):
    """No node takes the pod for now; ``FitError`` of v1.36.

    Attributes:
        diagnosis: The reasons, with the number of nodes of each.
        message: The diagnosis as text.
        evaluated_nodes: The number of nodes that were filtered.
        nominated_node_name: The node that PostFilter nominates; empty clears the pod's nomination,
            None leaves it as it is.
        preemption: The result of the preemption plugin; None if none ran.
        post_filter_status: The status of PostFilter; Success if it nominates a node.
    """

    diagnosis: Diagnosis
    message: str
    evaluated_nodes: int = 0
    nominated_node_name: str | None = None
    preemption: Preemption | None = None
    post_filter_status: Status = SUCCESS

    @property
    def searched_nodes(self) -> int:
        """The number of nodes after which the next limited search begins."""
        return self.evaluated_nodes

    @property
    def unschedulable_plugins(self) -> frozenset[str]:
        """The plugins that rejected the pod."""
        return self.diagnosis.unschedulable_plugins

    @property
    def requeueing_plugins(self) -> frozenset[str]:
        """The plugins whose events bring the pod back.

        They are those that rejected the pod and those that would reject it even after all possible
        victims were gone. kube-scheduler takes the former only.
        """
        if self.preemption is None:
            return self.unschedulable_plugins
        return self.unschedulable_plugins | self.preemption.refused_by

    @property
    def pending_plugins(self) -> frozenset[str]:
        """The plugins whose events bring the pod back without backoff."""
        return self.diagnosis.pending_plugins


class Failed(msgspec.Struct, frozen=True):
    """A plugin or an extender failed; the pod is retried after a backoff."""

    status: Status


class ExtendersNeeded(msgspec.Struct, frozen=True):
    """The decision needs the extenders' answers about the nodes that passed Filter.

    Attributes:
        node_names: The nodes to send to the extenders.
    """

    node_names: tuple[str, ...]


class VictimReviewNeeded(msgspec.Struct, frozen=True):
    """Preemption would help, and an extender has to review the victims first.

    Attributes:
        candidates: The nodes to send to the extenders, each with its victims.
    """

    candidates: tuple[Candidate, ...]


SchedulingResult: TypeAlias = Scheduled | Unschedulable | Failed
#: A result, or the question to extenders that has to be answered before there is one.
SchedulingOutcome: TypeAlias = SchedulingResult | ExtendersNeeded | VictimReviewNeeded
