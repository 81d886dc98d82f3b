"""The arithmetic of rollouts: the next size of each ReplicaSet of a Deployment."""

import math
from typing import NamedTuple

from simcluster.values import Json


class SetSize(NamedTuple):
    """Wanted and available replicas of a ReplicaSet."""

    replicas: int
    available: int


class RolloutPlan(NamedTuple):
    """New sizes: of the current ReplicaSet, and of the older ones in their order."""

    current: int
    older: list[int]


def plan_rollout(spec: Json, current: SetSize, older: list[SetSize]) -> RolloutPlan:
    """The next step of a rollout, by the Deployment's strategy.

    Rolling: never more than ``replicas + maxSurge`` in all, never fewer available than
    ``replicas - maxUnavailable``. Recreate: no new pod before all old ones are gone.
    """
    desired = int(spec["replicas"])
    if spec["strategy"]["type"] == "Recreate":
        is_gone = not any(size.replicas for size in older)
        return RolloutPlan(desired if is_gone else current.replicas, [0] * len(older))
    surge, unavailable = _bounds(spec, desired)
    total = current.replicas + sum(size.replicas for size in older)
    grown = min(desired, current.replicas + max(0, desired + surge - total))
    next_current = desired if current.replicas > desired else grown
    return RolloutPlan(next_current, _shrunk(older, current, desired - unavailable, next_current))


def plan_scaling(spec: Json, sizes: list[int], previous_total: int) -> list[int]:
    """New sizes of active ReplicaSets when a Deployment is scaled in the middle of a rollout.

    Each keeps its share of the total, as kube-controller-manager's proportional scaling; what
    rounding leaves over goes to the first.

    Args:
        spec: of the Deployment.
        sizes: the sets' sizes, the largest first.
        previous_total: replicas and surge that were allowed before.
    """
    desired = int(spec["replicas"])
    allowed = desired + (_bounds(spec, desired)[0] if desired else 0)
    left = allowed - sum(sizes)
    planned = []
    for size in sizes:
        share = round(size * allowed / previous_total) - size if previous_total else 0
        share = min(share, left) if left > 0 else max(share, left)
        if (share > 0) != (left > 0):
            share = 0
        left -= share
        planned.append(size + share)
    if planned and left:
        planned[0] = max(0, planned[0] + left)
    return planned


def max_replicas(spec: Json) -> int:
    """How many pods a Deployment may have in all."""
    desired = int(spec["replicas"])
    if spec["strategy"]["type"] == "Recreate" or not desired:
        return desired
    return desired + _bounds(spec, desired)[0]


def max_unavailable(spec: Json) -> int:
    """How many replicas a Deployment may lack and still count as available."""
    desired = int(spec["replicas"])
    return 0 if spec["strategy"]["type"] == "Recreate" else _bounds(spec, desired)[1]


def _bounds(spec: Json, desired: int) -> tuple[int, int]:
    rolling = spec["strategy"].get("rollingUpdate") or {}
    surge = scaled_value(rolling.get("maxSurge", "25%"), desired, round_up=True)
    unavailable = scaled_value(rolling.get("maxUnavailable", "25%"), desired, round_up=False)
    if not surge and not unavailable:
        unavailable = 1
    return surge, min(unavailable, desired)


def scaled_value(value: int | str, total: int, *, round_up: bool) -> int:
    """An int-or-percent of ``total``.

    Raises:
        ValueError: the text is no percentage.
    """
    if isinstance(value, int):
        return value
    share = int(value.removesuffix("%")) * total / 100
    return math.ceil(share) if round_up else math.floor(share)


def _shrunk(
    older: list[SetSize], current: SetSize, min_available: int, next_current: int
) -> list[int]:
    """Sizes of the old sets: first what is not available goes, then what can be spared."""
    total = next_current + sum(size.replicas for size in older)
    budget = total - min_available - (next_current - current.available)
    spare = current.available + sum(size.available for size in older) - min_available
    sizes = []
    for size in older:
        unhealthy = min(max(0, size.replicas - size.available), max(0, budget))
        budget -= unhealthy
        spared = min(size.replicas - unhealthy, max(0, spare), max(0, budget))
        budget -= spared
        spare -= spared
        sizes.append(size.replicas - unhealthy - spared)
    return sizes
