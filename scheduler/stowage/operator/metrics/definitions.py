"""Definitions of all metrics: kube-scheduler's (v1.36) and, named ``stowage_*``, our own.

Names, labels, buckets, help and stability of kube-scheduler's metrics are exactly its own, so that
dashboards and alerts work unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from stowage.operator.metrics.histogram import exponential_buckets


class Stability(StrEnum):
    """Stability level of a metric, part of its HELP text."""

    STABLE = "STABLE"
    BETA = "BETA"
    ALPHA = "ALPHA"


class Kind(StrEnum):
    """Type of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Definition(msgspec.Struct, frozen=True):
    """A metric; a histogram has `buckets`, their upper bounds without ``+Inf``."""

    kind: Kind
    name: str
    help: str
    labels: tuple[str, ...] = ()
    stability: Stability = Stability.ALPHA
    buckets: Sequence[float] = ()

    @property
    def help_text(self) -> str:
        """The HELP text, in the format of component-base."""
        return f"[{self.stability}] {self.help}"


_ATTEMPT_BUCKETS = exponential_buckets(0.001, 2, 15)
_REST_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)

SCHEDULE_ATTEMPTS = Definition(
    Kind.COUNTER,
    "scheduler_schedule_attempts_total",
    "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be "
    "scheduled, while 'error' means an internal scheduler problem.",
    ("result", "profile"),
    Stability.STABLE,
)
SCHEDULING_ATTEMPT_DURATION = Definition(
    Kind.HISTOGRAM,
    "scheduler_scheduling_attempt_duration_seconds",
    "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
    ("result", "profile"),
    Stability.STABLE,
    _ATTEMPT_BUCKETS,
)
SCHEDULING_ALGORITHM_DURATION = Definition(
    Kind.HISTOGRAM,
    "scheduler_scheduling_algorithm_duration_seconds",
    "Scheduling algorithm latency in seconds",
    buckets=_ATTEMPT_BUCKETS,
)
POD_SCHEDULING_SLI_DURATION = Definition(
    Kind.HISTOGRAM,
    "scheduler_pod_scheduling_sli_duration_seconds",
    "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and "
    "might involve multiple scheduling attempts.",
    ("attempts",),
    Stability.BETA,
    exponential_buckets(0.01, 2, 20),
)
POD_SCHEDULING_ATTEMPTS = Definition(
    Kind.HISTOGRAM,
    "scheduler_pod_scheduling_attempts",
    "Number of attempts to successfully schedule a pod.",
    stability=Stability.STABLE,
    buckets=exponential_buckets(1, 2, 5),
)
EXTENSION_POINT_DURATION = Definition(
    Kind.HISTOGRAM,
    "scheduler_framework_extension_point_duration_seconds",
    "Latency for running all plugins of a specific extension point.",  # 1 cycle in 20, all Binds
    ("extension_point", "status", "profile"),
    Stability.STABLE,
    exponential_buckets(0.0001, 2, 12),
)
PLUGIN_EXECUTION_DURATION = Definition(
    Kind.HISTOGRAM,
    "scheduler_plugin_execution_duration_seconds",
    "Duration for running a plugin at a specific extension point.",
    ("plugin", "extension_point", "status"),
    buckets=exponential_buckets(0.00001, 1.5, 20),
)
PLUGIN_EVALUATIONS = Definition(
    Kind.COUNTER,
    "scheduler_plugin_evaluation_total",
    "Number of attempts to schedule pods by each plugin and the extension point (available only in "
    "PreFilter, Filter, PreScore, and Score).",  # at Filter and Score: number of nodes
    ("plugin", "extension_point", "profile"),
    Stability.BETA,
)
QUEUEING_HINT_DURATION = Definition(
    Kind.HISTOGRAM,
    "scheduler_queueing_hint_execution_duration_seconds",
    "Duration for running a queueing hint function of a plugin.",  # once per equivalence class
    ("plugin", "event", "hint"),
    buckets=exponential_buckets(0.00001, 1.5, 20),
)
EVENT_HANDLING_DURATION = Definition(
    Kind.HISTOGRAM,
    "scheduler_event_handling_duration_seconds",
    "Event handling latency in seconds.",
    ("event",),
    buckets=exponential_buckets(0.0001, 2, 12),
)
PERMIT_WAIT_DURATION = Definition(
    Kind.HISTOGRAM,
    "scheduler_permit_wait_duration_seconds",
    "Duration of waiting on permit.",
    ("result",),
    Stability.BETA,
    _ATTEMPT_BUCKETS,
)
PREEMPTION_VICTIMS = Definition(
    Kind.HISTOGRAM,
    "scheduler_preemption_victims",
    "Number of selected preemption victims",
    stability=Stability.STABLE,
    buckets=exponential_buckets(1, 2, 7),
)
PREEMPTION_ATTEMPTS = Definition(
    Kind.COUNTER,
    "scheduler_preemption_attempts_total",
    "Total preemption attempts in the cluster till now",
    stability=Stability.STABLE,
)
PREEMPTION_GOROUTINES_DURATION = Definition(
    Kind.HISTOGRAM,
    "scheduler_preemption_goroutines_duration_seconds",
    "Duration in seconds for running goroutines for the preemption.",
    ("result",),
    buckets=exponential_buckets(0.01, 2, 20),
)
PREEMPTION_GOROUTINES_EXECUTION = Definition(
    Kind.COUNTER,
    "scheduler_preemption_goroutines_execution_total",
    "Number of preemption goroutines executed.",
    ("result",),
)
PENDING_PODS = Definition(
    Kind.GAUGE,
    "scheduler_pending_pods",
    "Number of pending pods, by the queue type. 'active' means number of pods in activeQ; "
    "'backoff' means number of pods in backoffQ; 'unschedulable' means number of pods in "
    "unschedulablePods that the scheduler attempted to schedule and failed; 'gated' is the number "
    "of unschedulable pods that the scheduler never attempted to schedule because they are gated.",
    ("queue",),
    Stability.STABLE,
)
QUEUE_INCOMING_PODS = Definition(
    Kind.COUNTER,
    "scheduler_queue_incoming_pods_total",
    "Number of pods added to scheduling queues by event and queue type.",
    ("queue", "event"),
    Stability.STABLE,
)
UNSCHEDULABLE_PODS = Definition(
    Kind.GAUGE,
    "scheduler_unschedulable_pods",
    "The number of unschedulable pods broken down by plugin name. A pod will increment the gauge "
    "for all plugins that caused it to not schedule and so this metric have meaning only when "
    "broken down by plugin.",
    ("plugin", "profile"),
    Stability.BETA,
)
CACHE_SIZE = Definition(
    Kind.GAUGE,
    "scheduler_cache_size",
    "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
    ("type",),
)
INFLIGHT_EVENTS = Definition(
    Kind.GAUGE,
    "scheduler_inflight_events",
    "Number of events currently tracked in the scheduling queue.",
    ("event",),
)
VOLUME_STAGE_ERRORS = Definition(
    Kind.COUNTER,
    "scheduler_volume_scheduling_stage_error_total",
    "Volume scheduling stage error count",
    ("operation",),
)
LEADER_ELECTION_MASTER_STATUS = Definition(
    Kind.GAUGE,
    "leader_election_master_status",
    "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 "
    "indicates master. 'name' is the string used to identify the lease. Please make sure to group "
    "by name.",
    ("name",),
)
REST_CLIENT_REQUESTS = Definition(
    Kind.COUNTER,
    "rest_client_requests_total",
    "Number of HTTP requests, partitioned by status code, method, and host.",
    ("code", "method", "host"),
)
REST_CLIENT_REQUEST_DURATION = Definition(
    Kind.HISTOGRAM,
    "rest_client_request_duration_seconds",
    "Request latency in seconds. Broken down by verb, and host.",
    ("verb", "host"),
    buckets=_REST_BUCKETS,
)
PLUGIN_FAILURES = Definition(
    Kind.COUNTER,
    "stowage_plugin_failures_total",
    "Number of attempts that ended because a plugin raised or returned an Error, by plugin.",
    ("plugin",),
)
EXTENDER_FAILURES = Definition(
    Kind.COUNTER,
    "stowage_extender_failures_total",
    "Number of requests that an extender did not answer, or answered with an error or an invalid "
    "answer, by URL of the extender; ignorable extenders included.",
    ("extender",),
)
CERTIFICATE_EXPIRY = Definition(
    Kind.GAUGE,
    "stowage_serving_certificate_expiry_timestamp_seconds",
    "Expiry time of the certificate of the HTTPS endpoints, in seconds since 1970.",
)
PROBLEMS = Definition(
    Kind.COUNTER,
    "stowage_problems_total",
    "Number of problems that affect one object or event only, such as invalid objects; each is "
    "in the log.",
)
EVENTS_DROPPED = Definition(
    Kind.COUNTER,
    "stowage_events_dropped_total",
    "Number of Kubernetes Events that were dropped because too many were waiting.",
)
UNFINISHED_BINDINGS = Definition(
    Kind.GAUGE,
    "stowage_unfinished_bindings",
    "Number of pods that have been scheduled and are not bound yet.",
)
REFLECTOR_LISTS = Definition(
    Kind.COUNTER,
    "stowage_reflector_lists_total",
    "Number of complete lists, by path; each after the first closes a gap in the watch.",
    ("path",),
)
REFLECTOR_FAILURES = Definition(
    Kind.COUNTER,
    "stowage_reflector_failures_total",
    "Number of lists and watches that failed, and of watches that ended without an event, by path.",
    ("path",),
)
WATCH_SILENCE = Definition(
    Kind.GAUGE,
    "stowage_watch_silence_seconds",
    "Seconds since the API server last sent data on this watch or list, by path; bookmarks count.",
    ("path",),
)
