"""Arguments of DefaultPreemption."""

from __future__ import annotations

from collections.abc import Iterator

from stowage.api.config.loading import ConfigError
from stowage.api.config.types import ConfigStruct


class DefaultPreemptionArgs(ConfigStruct, frozen=True):
    """The number of candidate nodes that preemption looks for; ``DefaultPreemptionArgs``."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100

    def validate(self) -> Iterator[ConfigError]:
        """Yield an error for each value out of bounds, and if both values are 0."""
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
        """The number of candidates to find among `num_nodes` (``calculateNumCandidates``)."""
        share = num_nodes * self.min_candidate_nodes_percentage // 100
        return min(max(share, self.min_candidate_nodes_absolute), num_nodes)
