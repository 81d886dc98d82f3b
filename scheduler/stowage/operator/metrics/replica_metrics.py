"""What this replica is and how busy, in Prometheus' terms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from stowage.operator.leader_election import LeaderElector
from stowage.operator.metrics import definitions
from stowage.operator.metrics.families import family_of
from stowage.operator.serving.serving_certificate import ServingCertificate
from stowage.operator.watch.reflector import Reflector

PENDING_PODS_PATH = "/api/v1/pods (pending)"
"""Their watch has no reflector, and the path of another one."""


class ReplicaMetrics(Collector):
    """Reads the state at each scrape.

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
        """Make the metric families; the registry calls it."""
        if self._elector is not None:
            is_leader = float(self._elector.may_write())
            yield family_of(
                definitions.LEADER_ELECTION_MASTER_STATUS,
                [((self._elector.lease_name,), is_leader)],
            )
        yield family_of(definitions.UNFINISHED_BINDINGS, [((), self._num_unfinished_bindings())])


class Watched(Protocol):
    """Something that hears of the API server; a `Reflector` or `PendingPods`."""

    @property
    def silence_s(self) -> float:
        """How long ago it heard anything."""
        ...


class ReflectorMetrics(Collector):
    """How well the watches hold; reads the reflectors at each scrape.

    Args:
        reflectors: Of all kinds but pending pods.
        pending_pods: Watched by Kopf.
    """

    def __init__(self, reflectors: Sequence[Reflector[Any]], pending_pods: Watched) -> None:
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
    """How often extenders fail; reads the counts at each scrape."""

    def __init__(self, failure_counts: Callable[[], Mapping[str, int]]) -> None:
        self._failure_counts = failure_counts

    def collect(self) -> Iterator[Metric]:
        """Make the metric family; the registry calls it."""
        counts = (((url,), count) for url, count in self._failure_counts().items())
        yield family_of(definitions.EXTENDER_FAILURES, counts)


class CertificateMetrics(Collector):
    """Until when clients can trust the endpoints; reads the certificate at each scrape."""

    def __init__(self, certificate: ServingCertificate) -> None:
        self._certificate = certificate

    def collect(self) -> Iterator[Metric]:
        """Make the metric family; the registry calls it."""
        yield family_of(definitions.CERTIFICATE_EXPIRY, [((), self._certificate.expires_at)])
