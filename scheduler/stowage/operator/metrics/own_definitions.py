"""Definitions of the metrics that kube-scheduler does not have; their names begin ``stowage_``."""

from __future__ import annotations

from stowage.operator.metrics.definition import Definition, Kind

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
BUILD_INFO = Definition(
    Kind.GAUGE,
    "stowage_build_info",
    "Always 1; the labels are the versions of Stowage and Python, and the platform.",
    ("version", "python_version", "platform"),
)
OLDEST_PENDING_POD = Definition(
    Kind.GAUGE,
    "stowage_oldest_pending_pod_seconds",
    "Seconds since the longest waiting pod was first ready to be scheduled, by this replica's "
    "observation; 0 if no pod waits. A pod that has been gated since its creation does not count.",
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
STATE_VALIDATIONS = Definition(
    Kind.COUNTER,
    "stowage_state_validations_total",
    "Number of checks of the whole state in memory, after a SIGUSR2 or on a standby, by result: "
    "'consistent', 'inconsistent', or 'failed' if a check raised an exception.",
    ("result",),
)
EVENTS_DROPPED = Definition(
    Kind.COUNTER,
    "stowage_events_dropped_total",
    "Number of Kubernetes Events that were dropped because too many were waiting.",
)
DECISIONS_LOGGED = Definition(
    Kind.COUNTER,
    "stowage_decision_log_decisions_total",
    "Number of decisions for the files of --decision-log, by outcome: written, or dropped because "
    "the files could not be written in time.",
    ("outcome",),
)
DECISION_LOG_FAILING = Definition(
    Kind.GAUGE,
    "stowage_decision_log_failing",
    "Whether the last write to the files of --decision-log failed (1) or not (0).",
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
    "Number of lists and watches that failed, and of watches that ended at once without an event, "
    "by path.",
    ("path",),
)
WATCH_SILENCE = Definition(
    Kind.GAUGE,
    "stowage_watch_silence_seconds",
    "Seconds since the API server last accepted this watch, or sent its data or list, by path.",
    ("path",),
)
RECORDING_ACTIVE = Definition(
    Kind.GAUGE,
    "stowage_recording_active",
    "1 while --record records, 0 after the recording ended because of a failure, which "
    "is in the log. Only with --record.",
)
RECORDING_BYTES = Definition(
    Kind.GAUGE,
    "stowage_recording_bytes",
    "Size of all recordings in the folder of --record. Only with --record.",
)
