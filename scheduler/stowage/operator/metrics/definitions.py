"""Definitions of kube-scheduler's metrics (v1.36); `own_definitions` has those of Stowage alone.

Names, labels, buckets, help and stability are exactly kube-scheduler's, so that dashboards and
alerts work unchanged.
"""

from __future__ import annotations

from stowage.operator.metrics.definition import Definition, Kind, Stability
from stowage.operator.metrics.histogram import exponential_buckets

_ATTEMPT_BUCKETS = exponential_buckets(0.001, 2, 15)
_SIZE_BUCKETS = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
_WORK_BUCKETS = exponential_buckets(1e-08, 10, 10)
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
PODGROUP_ATTEMPTS = Definition(
    Kind.COUNTER,
    "scheduler_podgroup_schedule_attempts_total",
    "Number of attempts to schedule pod group, by the result. 'unschedulable' means a pod group "
    "could not be scheduled, while 'error' means an internal scheduler problem.",
    ("result", "profile"),
)
PODGROUP_ATTEMPT_DURATION = Definition(
    Kind.HISTOGRAM,
    "scheduler_podgroup_scheduling_attempt_duration_seconds",
    "Pod group scheduling attempt latency in seconds",
    ("result", "profile"),
    buckets=_ATTEMPT_BUCKETS,
)
PODGROUP_ALGORITHM_DURATION = Definition(
    Kind.HISTOGRAM,
    "scheduler_podgroup_scheduling_algorithm_duration_seconds",
    "Pod group scheduling algorithm latency in seconds",
    buckets=_ATTEMPT_BUCKETS,
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
RESOURCE_CLAIM_CREATES = Definition(
    Kind.COUNTER,
    "scheduler_resourceclaim_creates_total",
    "Number of ResourceClaims creation requests within scheduler",
    ("status",),
)
DRA_BINDING_CONDITIONS_ALLOCATIONS = Definition(
    Kind.COUNTER,
    "scheduler_dra_bindingconditions_allocations_total",
    "Number of allocations using devices with BindingConditions, counted per driver per "
    "scheduling attempt",
    ("profile", "driver", "status"),
)
DRA_BINDING_CONDITIONS_WAIT_DURATION = Definition(
    Kind.HISTOGRAM,
    "scheduler_dra_bindingconditions_wait_duration_seconds",
    "Time in seconds spent waiting for BindingConditions to be satisfied during PreBind.",
    ("profile", "driver", "status"),
    buckets=exponential_buckets(0.1, 2, 14),
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
POD_SCHEDULED_AFTER_FLUSH = Definition(
    Kind.COUNTER,
    "scheduler_pod_scheduled_after_flush_total",
    "Number of pods that were successfully scheduled after being flushed from unschedulablePods "
    "due to timeout. This metric helps detect potential queueing hint misconfigurations or event "
    "handling issues.",
)
GOROUTINES = Definition(
    Kind.GAUGE,
    "scheduler_goroutines",
    "Number of running goroutines split by the work they do such as binding.",  # binding cycles
    ("operation",),
    Stability.BETA,
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
REST_CLIENT_REQUEST_SIZE = Definition(
    Kind.HISTOGRAM,
    "rest_client_request_size_bytes",
    "Request size in bytes. Broken down by verb and host.",
    ("verb", "host"),
    buckets=_SIZE_BUCKETS,
)
REST_CLIENT_RESPONSE_SIZE = Definition(
    Kind.HISTOGRAM,
    "rest_client_response_size_bytes",
    "Response size in bytes. Broken down by verb and host.",
    ("verb", "host"),
    buckets=_SIZE_BUCKETS,
)
REST_CLIENT_RATE_LIMITER_DURATION = Definition(
    Kind.HISTOGRAM,
    "rest_client_rate_limiter_duration_seconds",
    "Client side rate limiter latency in seconds. Broken down by verb, and host.",
    ("verb", "host"),
    buckets=_REST_BUCKETS,
)
REST_CLIENT_TRANSPORT_CACHE_ENTRIES = Definition(
    Kind.GAUGE,
    "rest_client_transport_cache_entries",
    "Number of transport entries in the internal cache.",  # connection pools
)
REST_CLIENT_TRANSPORT_CREATE_CALLS = Definition(
    Kind.COUNTER,
    "rest_client_transport_create_calls_total",
    "Number of calls to get a new transport, partitioned by the result of the operation hit: "
    "obtained from the cache, miss: created and added to the cache, uncacheable: created and not "
    "cached",  # sessions: the first of a pool is a miss
    ("result",),
)
WORKQUEUE_DEPTH = Definition(
    Kind.GAUGE,
    "workqueue_depth",
    "Current depth of workqueue",
    ("name",),
    Stability.BETA,
)
WORKQUEUE_ADDS = Definition(
    Kind.COUNTER,
    "workqueue_adds_total",
    "Total number of adds handled by workqueue",
    ("name",),
    Stability.BETA,
)
WORKQUEUE_QUEUE_DURATION = Definition(
    Kind.HISTOGRAM,
    "workqueue_queue_duration_seconds",
    "How long in seconds an item stays in workqueue before being requested.",
    ("name",),
    Stability.BETA,
    _WORK_BUCKETS,
)
WORKQUEUE_WORK_DURATION = Definition(
    Kind.HISTOGRAM,
    "workqueue_work_duration_seconds",
    "How long in seconds processing an item from workqueue takes.",
    ("name",),
    Stability.BETA,
    _WORK_BUCKETS,
)
WORKQUEUE_UNFINISHED_WORK = Definition(
    Kind.GAUGE,
    "workqueue_unfinished_work_seconds",
    "How many seconds of work has done that is in progress and hasn't been observed by "
    "work_duration. Large values indicate stuck threads. One can deduce the number of stuck "
    "threads by observing the rate at which this increases.",
    ("name",),
    Stability.BETA,
)
WORKQUEUE_LONGEST_RUNNING = Definition(
    Kind.GAUGE,
    "workqueue_longest_running_processor_seconds",
    "How many seconds has the longest running processor for workqueue been running.",
    ("name",),
    Stability.BETA,
)
AUTHENTICATED_USER_REQUESTS = Definition(
    Kind.COUNTER,
    "authenticated_user_requests",
    "Counter of authenticated requests broken out by username.",
    ("username",),
)
AUTHENTICATION_ATTEMPTS = Definition(
    Kind.COUNTER,
    "authentication_attempts",
    "Counter of authenticated attempts.",
    ("result",),
)
AUTHENTICATION_DURATION = Definition(
    Kind.HISTOGRAM,
    "authentication_duration_seconds",
    "Authentication duration in seconds broken out by result.",
    ("result",),
    buckets=_ATTEMPT_BUCKETS,
)
AUTHENTICATION_TOKEN_CACHE_REQUESTS = Definition(
    Kind.COUNTER,
    "authentication_token_cache_request_total",
    "",
    ("status",),
)
AUTHORIZATION_ATTEMPTS = Definition(
    Kind.COUNTER,
    "authorization_attempts_total",
    "Counter of authorization attempts broken down by result. It can be either 'allowed', "
    "'denied', 'no-opinion' or 'error'.",
    ("result",),
)
AUTHORIZATION_DURATION = Definition(
    Kind.HISTOGRAM,
    "authorization_duration_seconds",
    "Authorization duration in seconds broken out by result.",
    ("result",),
    buckets=_ATTEMPT_BUCKETS,
)
FEATURE_ENABLED = Definition(
    Kind.GAUGE,
    "kubernetes_feature_enabled",
    "This metric records the data about the stage and enablement of a k8s feature.",
    ("name", "stage"),
    Stability.BETA,
)
DISABLED_METRICS = Definition(
    Kind.COUNTER,
    "disabled_metrics_total",
    "The count of disabled metrics.",
    stability=Stability.BETA,
)
HEALTHCHECK = Definition(
    Kind.GAUGE,
    "kubernetes_healthcheck",
    "This metric records the result of a single healthcheck.",
    ("name", "type"),
    Stability.STABLE,
)
HEALTHCHECKS = Definition(
    Kind.COUNTER,
    "kubernetes_healthchecks_total",
    "This metric records the results of all healthcheck.",
    ("name", "type", "status"),
    Stability.STABLE,
)
