"""The outcome of the demo, checked by API objects."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from simcluster.demo.sample import is_meant_to_stay_pending
from simcluster.harness.audit import ClusterState, overcommitted_nodes, refused_pods
from simcluster.harness.placements import Placement


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast pods were bound; times in seconds, None where fewer than two were."""

    binds_per_s: float | None
    p50_s: float | None
    p99_s: float | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The cluster's state at the end, and the placements that the watch saw.

    Attributes:
        num_expected: Pods the manifests ask for.
    """

    state: ClusterState
    placements: Sequence[Placement]
    num_expected: int

    def problems(self) -> list[str]:
        """Violated expectations, one sentence each; empty means success."""
        return [
            *self._missing(),
            *self._wrongly_placed(),
            *overcommitted_nodes(self.state),
            *refused_pods([placement.pod for placement in self.placements]),
        ]

    def pace(self) -> Pace:
        """Binds per second from the first to the last, and creation to binding."""
        bound = sorted(each.bound_at for each in self.placements if each.bound_at is not None)
        waits = sorted(
            each.bound_at - each.created_at for each in self.placements if each.bound_at is not None
        )
        if len(bound) < 2 or bound[-1] == bound[0]:
            return Pace(None, None, None)
        rate = (len(bound) - 1) / (bound[-1] - bound[0])
        return Pace(rate, percentile(waits, 50), percentile(waits, 99))

    def _missing(self) -> Iterator[str]:
        if len(self.placements) < self.num_expected:
            yield f"{len(self.placements)} pods were created of {self.num_expected}"

    def _wrongly_placed(self) -> Iterator[str]:
        for placement in self.placements:
            metadata = placement.pod.metadata
            name = metadata.namespaced_name
            meant_to_wait = is_meant_to_stay_pending(metadata.annotations)
            if len(placement.node_names) > 1:
                yield f"pod {name} was seen on {' and '.join(placement.node_names)}"
            if placement.bound_at is None and not meant_to_wait:
                yield f"pod {name} was not bound: {pending_reason(placement)}"
            if placement.bound_at is not None and meant_to_wait:
                yield f"pod {name} was bound to {placement.node_names[0]}, no node should take it"


def pending_reason(placement: Placement) -> str:
    """The message of the PodScheduled condition."""
    condition = placement.scheduled_condition
    if condition is None or condition.status != "False":
        return "not tried yet"
    return condition.message or condition.reason


def percentile(ascending: Sequence[float], percent: int) -> float:
    """The smallest value that at least ``percent`` % of the values do not exceed.

    Examples:
        >>> percentile([1.0, 2.0, 3.0, 4.0], 50)
        2.0
    """
    rank = math.ceil(len(ascending) * percent / 100)
    return ascending[max(rank, 1) - 1]
