"""The answers of a pod's extenders to filter and prioritize requests."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stowage.api.status import Status


class ExtenderAnswers(msgspec.Struct, frozen=True):
    """The merged answers of all extenders about one pod; empty before they have answered.

    Attributes:
        any_filters: Whether at least one of the extenders filters nodes.
        asked: The nodes in the request.
        passed: The nodes that no extender rejected.
        rejected: Node -> status, for each node that an extender rejected with a reason.
        scores: Node -> score that the extenders add to the node's total.
    """

    any_filters: bool
    asked: frozenset[str] = frozenset()
    passed: frozenset[str] = frozenset()
    rejected: Mapping[str, Status] = msgspec.field(default_factory=dict)
    scores: Mapping[str, int] = msgspec.field(default_factory=dict)

    def has_rejected(self, node_name: str) -> bool:
        """Whether an extender rejected the node."""
        return node_name in self.asked and node_name not in self.passed
