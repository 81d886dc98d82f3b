"""Arguments of the plugins of this package, with kube-scheduler's defaults."""

from __future__ import annotations

from collections.abc import Iterator

from stowage.api.config.loading import ConfigError
from stowage.api.config.types import ConfigStruct, UtilizationShapePoint
from stowage.api.values.selectors import key_error
from stowage.framework.utilization_shape import MAX_SHAPE_SCORE, MAX_UTILIZATION, shape_errors

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"
_STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)


class ResourceSpec(ConfigStruct, frozen=True):
    """A resource and its weight."""

    name: str = ""
    weight: int = 1

    @property
    def effective_weight(self) -> int:
        """The weight; 0 means 1."""
        return self.weight or 1


DEFAULT_RESOURCES = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


class RequestedToCapacityRatioParam(ConfigStruct, frozen=True):
    """A function from utilization in percent to a score of 0..10, linear between its points."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(ConfigStruct, frozen=True):
    """The strategy by which NodeResourcesFit scores, and the resources it scores.

    The type has no default: kube-scheduler v1.36, too, refuses a strategy without one.
    """

    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None

    @property
    def scored_resources(self) -> tuple[ResourceSpec, ...]:
        """The resources; cpu and memory where none are given."""
        return self.resources or DEFAULT_RESOURCES


class NodeResourcesFitArgs(ConfigStruct, frozen=True):
    """Arguments of NodeResourcesFit: extended resources to ignore, and the scoring strategy."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(LEAST_ALLOCATED)

    def validate(self) -> Iterator[ConfigError]:
        """Yield the errors that ``ValidateNodeResourcesFitArgs`` of v1.36 finds."""
        for index, name in enumerate(self.ignored_resources):
            if key_error(name):
                path = f"ignoredResources[{index}]"
                yield ConfigError(path, name, "a resource name such as example.com/foo")
        for index, group in enumerate(self.ignored_resource_groups):
            if "/" in group or key_error(group):
                path = f"ignoredResourceGroups[{index}]"
                yield ConfigError(path, group, "a group such as example.com, without a slash")
        for error in _strategy_errors(self.scoring_strategy):
            yield error.under("scoringStrategy")


class NodeResourcesBalancedAllocationArgs(ConfigStruct, frozen=True):
    """Arguments of NodeResourcesBalancedAllocation: the resources to balance."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    @property
    def scored_resources(self) -> tuple[ResourceSpec, ...]:
        """The resources; cpu and memory where none are given."""
        return self.resources or DEFAULT_RESOURCES

    def validate(self) -> Iterator[ConfigError]:
        """Yield an error for each weight other than 1 and each name given twice."""
        seen = set()
        for index, resource in enumerate(self.resources):
            path = f"resources[{index}]"
            if resource.effective_weight != 1:
                yield ConfigError(f"{path}.weight", resource.weight, "1: weights have no effect")
            if resource.name in seen:
                yield ConfigError(f"{path}.name", resource.name, "a resource not listed already")
            seen.add(resource.name)


class RequestedToCapacityRatioPriorityArgs(ConfigStruct, frozen=True):
    """Arguments of RequestedToCapacityRatioPriority: the shape, by default that of 1.12."""

    shape: tuple[UtilizationShapePoint, ...] = (
        UtilizationShapePoint(0, MAX_SHAPE_SCORE),
        UtilizationShapePoint(MAX_UTILIZATION, 0),
    )

    def validate(self) -> Iterator[ConfigError]:
        """Yield an error for each point out of bounds or out of order."""
        yield from shape_errors(self.shape)


def _strategy_errors(strategy: ScoringStrategy) -> Iterator[ConfigError]:
    if strategy.type not in _STRATEGIES:
        yield ConfigError("type", strategy.type, f"one of {', '.join(_STRATEGIES)}")
    for index, resource in enumerate(strategy.resources):
        if not 1 <= resource.effective_weight <= 100:
            yield ConfigError(f"resources[{index}].weight", resource.weight, "1 to 100")
    ratio = strategy.requested_to_capacity_ratio
    if ratio is None and strategy.type == REQUESTED_TO_CAPACITY_RATIO:
        ratio = RequestedToCapacityRatioParam()
    if ratio is not None:
        # With another type, too: as in v1.36.
        for error in shape_errors(ratio.shape):
            yield error.under("requestedToCapacityRatio")
