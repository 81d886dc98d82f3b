"""Wrong arguments of plugins are named with their field, their value and what was expected."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import pytest

from stowage.api.config.errors import ConfigError
from stowage.api.config.types import UtilizationShapePoint
from stowage.api.objects.meta import LabelSelector
from stowage.api.values.duration import Duration
from stowage.plugins.aged_priority_sort import AgedPrioritySortArgs
from stowage.plugins.default_preemption.args import DefaultPreemptionArgs
from stowage.plugins.dynamic_resources import DynamicResourcesArgs
from stowage.plugins.inter_pod_affinity.args import InterPodAffinityArgs
from stowage.plugins.node_resources.args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
)
from stowage.plugins.pod_topology_spread.args import DefaultConstraint, PodTopologySpreadArgs
from stowage.plugins.service_affinity import ServiceAffinityArgs
from stowage.plugins.volumes import MaxVolumeCountArgs

ZONE = DefaultConstraint(max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule")


class Args(Protocol):
    """Arguments of a plugin."""

    def validate(self) -> Iterable[ConfigError]:
        """The errors."""
        ...


def ratio(
    *points: tuple[int, int], strategy: str = "RequestedToCapacityRatio"
) -> NodeResourcesFitArgs:
    """Arguments with this shape, as pairs of utilization and score."""
    shape = tuple(UtilizationShapePoint(*point) for point in points)
    return NodeResourcesFitArgs(
        scoring_strategy=ScoringStrategy(
            strategy, requested_to_capacity_ratio=RequestedToCapacityRatioParam(shape)
        )
    )


SHAPE = "scoringStrategy.requestedToCapacityRatio.shape"
WRONG: dict[str, Args] = {
    "secondsPerPriorityPoint: -1.0 (expected from 0 to ": AgedPrioritySortArgs(-1.0),
    "minCandidateNodesPercentage: 101 (expected from 0 to 100)": DefaultPreemptionArgs(101),
    'disruptionBudgets: "Never" (expected BestEffort or Respect)': DefaultPreemptionArgs(
        disruption_budgets="Never"
    ),
    "hardPodAffinityWeight: 101 (expected a whole number from 0 to 100)": InterPodAffinityArgs(101),
    "resources[0].weight: 3 (expected 1: weights have no effect)": (
        NodeResourcesBalancedAllocationArgs((ResourceSpec("cpu", 3),))
    ),
    "scoringStrategy.resources[0].weight: 101 (expected 1 to 100)": NodeResourcesFitArgs(
        scoring_strategy=ScoringStrategy("LeastAllocated", (ResourceSpec("cpu", 101),))
    ),
    'scoringStrategy.type: "" (expected one of LeastAllocated, ': NodeResourcesFitArgs(
        scoring_strategy=ScoringStrategy(resources=(ResourceSpec("cpu", 1),))
    ),
    "scoringStrategy.requestedToCapacityRatio.shape: [] (expected at least one point)": ratio(),
    f"{SHAPE}[2].utilization: 20 (expected more than 50, the utilization of the point before)": (
        ratio((0, 0), (50, 5), (20, 10))
    ),
    f"{SHAPE}: [] (expected at least one point": NodeResourcesFitArgs(
        scoring_strategy=ScoringStrategy(
            "LeastAllocated", requested_to_capacity_ratio=RequestedToCapacityRatioParam()
        )
    ),
    'bindingTimeout: "500ms" (expected 1s or longer)': DynamicResourcesArgs(
        binding_timeout=Duration(0.5)
    ),
    "defaultConstraints[0].maxSkew: 2147483648 (expected at most 2147483647)": (
        PodTopologySpreadArgs((DefaultConstraint(2**31, "zone", "DoNotSchedule"),), "List")
    ),
    'defaultingType: "System" (expected "List" where': PodTopologySpreadArgs((ZONE,), ""),
    f"{SHAPE}[0].score: 11 (expected 0 to 10)": ratio((0, 11), strategy="LeastAllocated"),
    'defaultConstraints[0].topologyKey: "" (expected a label key; ': PodTopologySpreadArgs(
        (DefaultConstraint(max_skew=1, topology_key="", when_unsatisfiable="DoNotSchedule"),),
        "List",
    ),
    'defaultConstraints[0].whenUnsatisfiable: "Maybe" (expected "DoNotSchedule" or ': (
        PodTopologySpreadArgs((DefaultConstraint(1, "zone", "Maybe"),), "List")
    ),
    'defaultConstraints[0].labelSelector: {"matchLabels":{"app":"web"}} (expected none, ': (
        PodTopologySpreadArgs(
            (DefaultConstraint(1, "zone", "DoNotSchedule", LabelSelector({"app": "web"})),), "List"
        )
    ),
    'defaultConstraints[1]: ["zone","DoNotSchedule"] (expected a topologyKey and ': (
        PodTopologySpreadArgs((ZONE, ZONE), "List")
    ),
    'affinityLabels[1]: "zone" (expected the key of a label, given once)': ServiceAffinityArgs(
        ("zone", "zone")
    ),
    "maxVolumes: 0 (expected greater than 0)": MaxVolumeCountArgs(0),
}


@pytest.mark.parametrize("text", WRONG)
def test_the_error_names_the_field_its_value_and_what_was_expected(text: str) -> None:
    (found,) = WRONG[text].validate()
    assert str(found).startswith(text)


@pytest.mark.parametrize(
    "args",
    [
        AgedPrioritySortArgs(0.0),
        DefaultPreemptionArgs(0, 1, "Respect"),
        DefaultPreemptionArgs(100, 0),
        InterPodAffinityArgs(0),
        InterPodAffinityArgs(100),
        NodeResourcesBalancedAllocationArgs((ResourceSpec("cpu", 0), ResourceSpec("memory", 1))),
        NodeResourcesFitArgs(
            scoring_strategy=ScoringStrategy("LeastAllocated", (ResourceSpec("cpu", 100),))
        ),
        NodeResourcesFitArgs(
            scoring_strategy=ScoringStrategy("LeastAllocated", (ResourceSpec(weight=1),))
        ),
        ratio((0, 10), (100, 0)),
        DynamicResourcesArgs(Duration(0), Duration(1)),
        ratio((0, 10), strategy="MostAllocated"),
        PodTopologySpreadArgs((ZONE,), "List"),
        PodTopologySpreadArgs((DefaultConstraint(2**31 - 1, "zone", "DoNotSchedule"),), "List"),
        PodTopologySpreadArgs((), ""),
        ServiceAffinityArgs(("zone",), ("zone",)),
        MaxVolumeCountArgs(1),
    ],
)
def test_values_on_the_bounds_are_right(args: Args) -> None:
    assert list(args.validate()) == []
