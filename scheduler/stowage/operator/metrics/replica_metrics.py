"""Metrics of this replica: leadership, bindings, validations, watches, extenders, certificate."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from stowage.api.config.feature_gates import FeatureGates
from stowage.operator.client.connection import Connection
from stowage.operator.decisions.log import DecisionLog
from stowage.operator.leader_election import LeaderElector
from stowage.operator.metrics import definitions, own_definitions
from stowage.operator.metrics.families import family_of
from stowage.operator.serving.serving_certificate import ServingCertificate
from stowage.operator.watch.pending_pods import PendingPods
from stowage.operator.watch.reflector import Reflector

if TYPE_CHECKING:
    from stowage.recording.recorder import Recorder

PENDING_PODS_PATH = "/api/v1/pods (pending)"
"""Kopf watches the pending pods; their path is the one of the reflector of assigned pods."""


class ReplicaMetrics(Collector):
    """Reads leadership, unfinished bindings and validations at each scrape.

    Args:
        elector: The leader elector; None without leader election.
        num_unfinished_bindings: Returns the number of pods that are scheduled and not bound.
        validation_counts: Returns the number of validations of the state, by result.
    """

    def __init__(
        self,
        elector: LeaderElector | None,
        num_unfinished_bindings: Callable[[], int],
        validation_counts: Callable[[], Mapping[str, int]],
    ) -> None:
        self._elector = elector
        self._num_unfinished_bindings = num_unfinished_bindings
        self._validation_counts = validation_counts

    def collect(self) -> Iterator[Metric]:
        """Make the metric families; the registry calls it."""
        if self._elector is not None:
            is_leader = float(self._elector.may_write())
            yield family_of(
                definitions.LEADER_ELECTION_MASTER_STATUS,
                [((self._elector.lease_name,), is_leader)],
            )
        num_unfinished = self._num_unfinished_bindings()
        yield family_of(own_definitions.UNFINISHED_BINDINGS, [((), num_unfinished)])
        # A binding cycle, which is a goroutine in kube-scheduler.
        yield family_of(definitions.GOROUTINES, [(("binding",), num_unfinished)])
        validations = (((result,), count) for result, count in self._validation_counts().items())
        yield family_of(own_definitions.STATE_VALIDATIONS, validations)
        yield family_of(own_definitions.BUILD_INFO, [(_build_info(), 1)])


def _build_info() -> tuple[str, str, str]:
    """The labels of `own_definitions.BUILD_INFO`."""
    system = f"{platform.system().lower()}/{platform.machine()}"
    return metadata.version("stowage"), platform.python_version(), system


class TransportMetrics(Collector):
    """Reads the connections at each scrape.

    A connection pool is what client-go calls a transport. Its sessions share it: the first one of
    a pool makes it, the others obtain it.
    """

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._connections = connections

    def collect(self) -> Iterator[Metric]:
        """Make the metric families; the registry calls it."""
        num_pools = len(self._connections)
        num_sessions = sum(each.num_sessions for each in self._connections)
        calls = [(("miss",), num_pools), (("hit",), num_sessions - num_pools)]
        yield family_of(definitions.REST_CLIENT_TRANSPORT_CACHE_ENTRIES, [((), num_pools)])
        yield family_of(definitions.REST_CLIENT_TRANSPORT_CREATE_CALLS, calls)


class FeatureGateMetrics(Collector):
    """Shows the values of the feature gates."""

    def __init__(self, gates: FeatureGates) -> None:
        self._gates = gates

    def collect(self) -> Iterator[Metric]:
        """Make the metric family; the registry calls it."""
        values = (
            ((gate.name, gate.stage.value), float(is_on)) for gate, is_on in self._gates.values()
        )
        yield family_of(definitions.FEATURE_ENABLED, values)


class ReflectorMetrics(Collector):
    """Reads the state of the watches at each scrape.

    Args:
        reflectors: Returns the reflectors of all kinds except pending pods.
        pending_pods: The pending pods, which Kopf watches.
    """

    def __init__(
        self, reflectors: Callable[[], Sequence[Reflector[Any]]], pending_pods: PendingPods
    ) -> None:
        self._reflectors = reflectors
        self._pending_pods = pending_pods

    def collect(self) -> Iterator[Metric]:
        """Make the metric families; the registry calls it."""
        reflectors = self._reflectors()
        paths = [(each.path,) for each in reflectors]
        for definition, counts in (
            (own_definitions.REFLECTOR_LISTS, [each.num_lists for each in reflectors]),
            (own_definitions.REFLECTOR_FAILURES, [each.num_failures for each in reflectors]),
        ):
            yield family_of(definition, zip(paths, counts, strict=True))
        silences = [(path, each.idle_s) for path, each in zip(paths, reflectors, strict=True)]
        silences.append(((PENDING_PODS_PATH,), self._pending_pods.idle_s))
        yield family_of(own_definitions.WATCH_SILENCE, silences)


class ExtenderMetrics(Collector):
    """Reads the failures of extenders at each scrape."""

    def __init__(self, failure_counts: Callable[[], Mapping[str, int]]) -> None:
        self._failure_counts = failure_counts

    def collect(self) -> Iterator[Metric]:
        """Make the metric family; the registry calls it."""
        counts = (((url,), count) for url, count in self._failure_counts().items())
        yield family_of(own_definitions.EXTENDER_FAILURES, counts)


class CertificateMetrics(Collector):
    """Reads the expiry time of the serving certificate at each scrape."""

    def __init__(self, certificate: ServingCertificate) -> None:
        self._certificate = certificate

    def collect(self) -> Iterator[Metric]:
        """Make the metric family; the registry calls it."""
        yield family_of(own_definitions.CERTIFICATE_EXPIRY, [((), self._certificate.expires_at)])


class RecordingMetrics(Collector):
    """Reads the state of the recording at each scrape."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def collect(self) -> Iterator[Metric]:
        """Make the metric families; the registry calls it."""
        recorder = self._recorder
        yield family_of(own_definitions.RECORDING_ACTIVE, [((), float(recorder.is_recording))])
        yield family_of(own_definitions.RECORDING_BYTES, [((), float(recorder.num_bytes))])


class DecisionLogMetrics(Collector):
    """Reads the state of the decision log at each scrape."""

    def __init__(self, log: DecisionLog) -> None:
        self._log = log

    def collect(self) -> Iterator[Metric]:
        """Make the metric families; the registry calls it."""
        counts = [(("written",), self._log.num_written), (("dropped",), self._log.num_dropped)]
        yield family_of(own_definitions.DECISIONS_LOGGED, counts)
        yield family_of(own_definitions.DECISION_LOG_FAILING, [((), float(self._log.is_failing))])
