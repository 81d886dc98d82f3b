"""DefaultPreemption's arguments."""

from __future__ import annotations

from collections.abc import Iterator

from stowage.api.config.loading import ConfigError
from stowage.api.config.types import ConfigStruct


class DefaultPreemptionArgs(ConfigStruct, frozen=True):
    """How many candidate nodes a dry run looks for; ``DefaultPreemptionArgs`` of v1.36."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100

    def validate(self) -> Iterator[ConfigError]:
        """0 to 100 percent, no negative number, and not 0 of both."""
        percentage, absolute = (
            self.min_candidate_nodes_percentage,
            self.min_candidate_nodes_absolute,
        )
        if not 0 <= percentage <= 100:
            yield ConfigError("minCandidateNodesPercentage", percentage, "from 0 to 100")
        if absolute < 0:
            yield ConfigError("minCandidateNodesAbsolute", absolute, "at least 0")
        if percentage == absolute == 0:
            yield ConfigError(
                "minCandidateNodesAbsolute", 0, "above 0 where minCandidateNodesPercentage is 0"
            )

    def num_candidates(self, num_nodes: int) -> int:
        """How many candidates are enough of `num_nodes` (``calculateNumCandidates`` of v1.36)."""
        share = num_nodes * self.min_candidate_nodes_percentage // 100
        return min(max(share, self.min_candidate_nodes_absolute), num_nodes)
