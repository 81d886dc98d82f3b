"""Arguments of DefaultPreemption."""

from __future__ import annotations

from collections.abc import Iterator

from stowage.api.config.loading import ConfigError
from stowage.api.config.types import ConfigStruct

BEST_EFFORT = "BestEffort"
RESPECT = "Respect"


class DefaultPreemptionArgs(ConfigStruct, frozen=True):
    """``DefaultPreemptionArgs`` of kubescheduler.config.k8s.io/v1, and `disruption_budgets`.

    Attributes:
        min_candidate_nodes_percentage: Percentage of the nodes to find as candidates.
        min_candidate_nodes_absolute: The least number of candidates to find.
        disruption_budgets: ``BestEffort`` prefers victims whose eviction violates no disruption
            budget, as kube-scheduler does; ``Respect`` evicts no others.
    """

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100
    disruption_budgets: str = BEST_EFFORT

    @property
    def respects_budgets(self) -> bool:
        """Whether preemption may not violate a disruption budget."""
        return self.disruption_budgets == RESPECT

    def validate(self) -> Iterator[ConfigError]:
        """Yield an error for each value out of bounds, and if both numbers are 0."""
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
        if self.disruption_budgets not in (BEST_EFFORT, RESPECT):
            expectation = f"{BEST_EFFORT} or {RESPECT}"
            yield ConfigError("disruptionBudgets", self.disruption_budgets, expectation)

    def num_candidates(self, num_nodes: int) -> int:
        """The number of candidates to find among `num_nodes` (``calculateNumCandidates``)."""
        share = num_nodes * self.min_candidate_nodes_percentage // 100
        return min(max(share, self.min_candidate_nodes_absolute), num_nodes)
