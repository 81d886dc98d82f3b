"""Metrics of this replica: leadership, unfinished bindings, watches, extenders, certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from stowage.operator.leader_election import LeaderElector
from stowage.operator.metrics import definitions
from stowage.operator.metrics.families import family_of
from stowage.operator.serving.serving_certificate import ServingCertificate
from stowage.operator.watch.pending_pods import PendingPods
from stowage.operator.watch.reflector import Reflector

PENDING_PODS_PATH = "/api/v1/pods (pending)"
"""Kopf watches the pending pods; their path is the one of the reflector of assigned pods."""


class ReplicaMetrics(Collector):
    """Reads leadership and unfinished bindings at each scrape.

    Args:
        elector: The leader elector; None without leader election.
        num_unfinished_bindings: Returns the number of pods that are scheduled and not bound.
    """

    def __init__(
        self, elector: LeaderElector | None, num_unfinished_bindings: Callable[[], int]
    ) -> None:
        self._elector = elector
        self._num_unfinished_bindings = num_unfinished_bindings

    def collect(self) -> Iterator[Metric]:
        """Make the metric families; the registry calls it."""
        if self._elector is not None:
            is_leader = float(self._elector.may_write())
            yield family_of(
                definitions.LEADER_ELECTION_MASTER_STATUS,
                [((self._elector.lease_name,), is_leader)],
            )
        yield family_of(definitions.UNFINISHED_BINDINGS, [((), self._num_unfinished_bindings())])


class ReflectorMetrics(Collector):
    """Reads the state of the watches at each scrape.

    Args:
        reflectors: The reflectors of all kinds except pending pods.
        pending_pods: The pending pods, which Kopf watches.
    """

    def __init__(self, reflectors: Sequence[Reflector[Any]], pending_pods: PendingPods) -> None:
        self._reflectors = reflectors
        self._pending_pods = pending_pods

    def collect(self) -> Iterator[Metric]:
        """Make the metric families; the registry calls it."""
        paths = [(each.path,) for each in self._reflectors]
        for definition, counts in (
            (definitions.REFLECTOR_LISTS, [each.num_lists for each in self._reflectors]),
            (definitions.REFLECTOR_FAILURES, [each.num_failures for each in self._reflectors]),
        ):
            yield family_of(definition, zip(paths, counts, strict=True))
        silences = [
            (path, each.silence_s) for path, each in zip(paths, self._reflectors, strict=True)
        ]
        silences.append(((PENDING_PODS_PATH,), self._pending_pods.silence_s))
        yield family_of(definitions.WATCH_SILENCE, silences)


class ExtenderMetrics(Collector):
    """Reads the failures of extenders at each scrape."""

    def __init__(self, failure_counts: Callable[[], Mapping[str, int]]) -> None:
        self._failure_counts = failure_counts

    def collect(self) -> Iterator[Metric]:
        """Make the metric family; the registry calls it."""
        counts = (((url,), count) for url, count in self._failure_counts().items())
        yield family_of(definitions.EXTENDER_FAILURES, counts)


class CertificateMetrics(Collector):
    """Reads the expiry time of the serving certificate at each scrape."""

    def __init__(self, certificate: ServingCertificate) -> None:
        self._certificate = certificate

    def collect(self) -> Iterator[Metric]:
        """Make the metric family; the registry calls it."""
        yield family_of(definitions.CERTIFICATE_EXPIRY, [((), self._certificate.expires_at)])
