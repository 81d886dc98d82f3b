"""What extenders have been asked about a pod, and what they said."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stowage.api.status import Status
from stowage.framework import Candidate


class Consulted(msgspec.Struct, frozen=True):
    """The state of a pod's consultation; empty before the extenders have been asked.

    Attributes:
        any_filters: Whether one of the extenders may reject nodes.
        asked: The nodes they were asked about.
        passed: The nodes that none of them rejected.
        rejected: Node -> why not, for those that were given a reason.
        scores: Node -> what they add to its total.
    """

    any_filters: bool
    asked: frozenset[str] = frozenset()
    passed: frozenset[str] = frozenset()
    rejected: Mapping[str, Status] = msgspec.field(default_factory=dict)
    scores: Mapping[str, int] = msgspec.field(default_factory=dict)

    def has_rejected(self, node_name: str) -> bool:
        """Whether the node was asked about in vain."""
        return node_name in self.asked and node_name not in self.passed


class ConsultationNeeded(msgspec.Struct, frozen=True):
    """The plugins are done; the extenders have not been asked about any node that is left.

    Attributes:
        node_names: The nodes to ask about.
        evaluated_nodes: Nodes that were filtered.
    """

    node_names: tuple[str, ...]
    evaluated_nodes: int


class ReviewNeeded(msgspec.Struct, frozen=True):
    """Preemption would help; extenders have not been asked about its victims.

    Attributes:
        candidates: The nodes to ask about, with the victims of each.
        evaluated_nodes: Nodes that were filtered.
    """

    candidates: tuple[Candidate, ...]
    evaluated_nodes: int
