"""What this replica is and how busy, in Prometheus' terms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from scheduler.operator import metric_definitions as definitions
from scheduler.operator.leader_election import LeaderElector
from scheduler.operator.metric_families import family_of
from scheduler.operator.reflector import Reflector


class ReplicaMetrics(Collector):
    """Reads the state when somebody scrapes.

    Args:
        elector: None without leader election.
        num_unfinished_bindings: Pods on their way from decided to bound.
    """

    def __init__(
        self, elector: LeaderElector | None, num_unfinished_bindings: Callable[[], int]
    ) -> None:
        self._elector = elector
        self._num_unfinished_bindings = num_unfinished_bindings

    def collect(self) -> Iterator[Metric]:
        """Make the families; called by the registry."""
        if self._elector is not None:
            is_leader = float(self._elector.may_write())
            yield family_of(
                definitions.LEADER_ELECTION_MASTER_STATUS,
                [((self._elector.lease_name,), is_leader)],
            )
        yield family_of(definitions.UNFINISHED_BINDINGS, [((), self._num_unfinished_bindings())])


class ReflectorMetrics(Collector):
    """How well the watches hold; reads the reflectors when somebody scrapes."""

    def __init__(self, reflectors: Sequence[Reflector[Any]]) -> None:
        self._reflectors = reflectors

    def collect(self) -> Iterator[Metric]:
        """Make the families; called by the registry."""
        for definition, counts in (
            (definitions.REFLECTOR_LISTS, [each.num_lists for each in self._reflectors]),
            (definitions.REFLECTOR_FAILURES, [each.num_failures for each in self._reflectors]),
        ):
            paths = [(each.path,) for each in self._reflectors]
            yield family_of(definition, zip(paths, counts, strict=True))
