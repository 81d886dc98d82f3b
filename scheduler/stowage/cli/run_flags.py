"""The flags of ``stowage run``, named as in kube-scheduler where it has the flag."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from stowage.api.values.duration import Duration, parse_duration
from stowage.api.values.quantity import parse_quantity
from stowage.cli.go_flags import BOOLEAN, GoBool, parse_boolean
from stowage.cli.version import print_version_like_kube_scheduler

_SERVER = "API server"
_SCHEDULING = "Scheduling"
_ELECTION = "Leader election"
_DECISIONS = "Decisions"
_LOGGING = "Logging"
_RECORDING = "Recording"
_OTHER = "Other"


_METRIC_NAME = r"^[a-zA-Z_:][a-zA-Z0-9_:]*$"


def _metric_names(text: str) -> str:
    """A list of names, checked as in component-base."""
    for name in text.split(","):
        if name and not re.fullmatch(_METRIC_NAME, name):
            raise typer.BadParameter(
                f"--disabled-metrics must be fully qualified metric names matching "
                f'"{_METRIC_NAME}", got "{name}"'
            )
    return text


def names_in(values: list[str] | None) -> frozenset[str]:
    """The names in the values of a flag that takes lists."""
    return frozenset(name for value in values or () for name in value.split(",") if name)


def parse_size(text: str) -> int:
    """A size in bytes, as a quantity: ``500Mi``.

    Raises:
        ValueError: It is no quantity, or not positive.
    """
    size = parse_quantity(text).value()
    if size <= 0:
        raise ValueError(f"{text!r} (expected a size above 0, such as 500Mi)")
    return size


class LoggingFormat(StrEnum):
    """Format of log lines."""

    JSON = "json"
    TEXT = "text"


Kubeconfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        metavar="FILE",
        help="Path to the kubeconfig. Default: $KUBECONFIG or ~/.kube/config, otherwise the "
        "service account of the pod.",
        rich_help_panel=_SERVER,
    ),
]
Master: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Address of the API server; overrides the kubeconfig.",
        rich_help_panel=_SERVER,
    ),
]
KubeApiQps: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--kube-api-qps",
        metavar="FLOAT",
        help="Rate limit of requests to the API server, per second; 0 or less for no limit.",
        show_default="clientConnection.qps",
        rich_help_panel=_SERVER,
    ),
]
KubeApiBurst: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--kube-api-burst",
        metavar="INT",
        help="Number of requests to the API server at once, above the rate limit.",
        show_default="clientConnection.burst",
        rich_help_panel=_SERVER,
    ),
]
KubeApiContentType: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--kube-api-content-type",
        metavar="TYPE",
        help="Accepted without effect: requests to the API server are in JSON.",
        show_default="clientConnection.contentType",
        rich_help_panel=_SERVER,
    ),
]
ConfigFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Path to a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1). The file is "
        "read once. Flags override it.",
        rich_help_panel=_SCHEDULING,
    ),
]
ConfigMap: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAMESPACE/NAME[:KEY]",
        help="ConfigMap with the configuration, instead of --config; the default key is "
        "config.yaml. Flags override it. A valid edit takes effect without a restart. An invalid "
        "edit changes nothing and is reported by an Event on the ConfigMap.",
        rich_help_panel=_SCHEDULING,
    ),
]
PolicyConfigFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--policy-config-file",
        metavar="FILE",
        help="Path to a Policy of kube-scheduler 1.12, instead of --config. The file is read once.",
        rich_help_panel=_SCHEDULING,
    ),
]
AlgorithmProvider: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--algorithm-provider",
        metavar="NAME",
        help="Algorithm provider of kube-scheduler 1.12, instead of --config: DefaultProvider or "
        "ClusterAutoscalerProvider.",
        rich_help_panel=_SCHEDULING,
    ),
]
SchedulerName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="spec.schedulerName of the pods to schedule; only without --config and --configmap.",
        show_default="stowage",
        rich_help_panel=_SCHEDULING,
    ),
]
MaxInUnschedulable: TypeAlias = Annotated[
    Duration | None,
    typer.Option(
        "--pod-max-in-unschedulable-pods-duration",
        parser=parse_duration,
        metavar="DURATION",
        help="A pod that is unschedulable for this long is tried again without any event.",
        show_default="5m0s",
        rich_help_panel=_SCHEDULING,
    ),
]
FeatureGates: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-gates",
        metavar="NAME=BOOL,...",
        help="Feature gates of kube-scheduler v1.36, as in AllBeta=false,GenericWorkload=true; may "
        "be repeated. A gate without effect here is named in the log.",
        rich_help_panel=_SCHEDULING,
    ),
]
WriteConfigTo: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--write-config-to",
        metavar="FILE",
        help="Write the effective configuration, without private keys, to this new file and exit.",
        rich_help_panel=_SCHEDULING,
    ),
]
LeaderElect: TypeAlias = Annotated[
    GoBool | None,
    typer.Option(
        "--leader-elect",
        parser=parse_boolean,
        metavar=BOOLEAN,
        help="Schedule only while this replica holds the Lease.",
        show_default="true",
        rich_help_panel=_ELECTION,
    ),
]
LeaseDuration: TypeAlias = Annotated[
    Duration | None,
    typer.Option(
        "--leader-elect-lease-duration",
        parser=parse_duration,
        metavar="DURATION",
        help="How long candidates wait for a leader that does not renew the Lease.",
        show_default="15s",
        rich_help_panel=_ELECTION,
    ),
]
RenewDeadline: TypeAlias = Annotated[
    Duration | None,
    typer.Option(
        "--leader-elect-renew-deadline",
        parser=parse_duration,
        metavar="DURATION",
        help="How long a leader tries to renew the Lease before it exits.",
        show_default="10s",
        rich_help_panel=_ELECTION,
    ),
]
RetryPeriod: TypeAlias = Annotated[
    Duration | None,
    typer.Option(
        "--leader-elect-retry-period",
        parser=parse_duration,
        metavar="DURATION",
        help="Time between two attempts to acquire or renew the Lease.",
        show_default="2s",
        rich_help_panel=_ELECTION,
    ),
]
ResourceLock: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--leader-elect-resource-lock",
        metavar="KIND",
        help="Kind of the object that is locked; only leases.",
        show_default="leases",
        rich_help_panel=_ELECTION,
    ),
]
LeaseName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--leader-elect-resource-name",
        metavar="NAME",
        help="Name of the Lease.",
        show_default="stowage",
        rich_help_panel=_ELECTION,
    ),
]
LeaseNamespace: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--leader-elect-resource-namespace",
        metavar="NAMESPACE",
        help="Namespace of the Lease.",
        show_default="kube-system",
        rich_help_panel=_ELECTION,
    ),
]
DisabledMetrics: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--disabled-metrics",
        metavar="NAMES",
        parser=_metric_names,
        help="Complete names of metrics that are not exposed, as in a_total,b; may be repeated.",
        rich_help_panel=_OTHER,
    ),
]
DecisionLog: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--decision-log",
        file_okay=False,
        metavar="DIR",
        help="Write every decision as a line of JSON to files in this directory; one directory for "
        "each replica.",
        rich_help_panel=_DECISIONS,
    ),
]
DecisionLogFileSize: TypeAlias = Annotated[
    int,
    typer.Option(
        "--decision-log-file-size",
        min=1,
        metavar="MIB",
        help="Begin a new file after this many MiB.",
        rich_help_panel=_DECISIONS,
    ),
]
DecisionLogFileAge: TypeAlias = Annotated[
    Duration | None,
    typer.Option(
        "--decision-log-file-age",
        parser=parse_duration,
        metavar="DURATION",
        help="Begin a new file after this time.",
        show_default="24h",
        rich_help_panel=_DECISIONS,
    ),
]
DecisionLogFiles: TypeAlias = Annotated[
    int,
    typer.Option(
        "--decision-log-files",
        min=1,
        metavar="INT",
        help="Number of files to keep; the oldest ones are deleted.",
        rich_help_panel=_DECISIONS,
    ),
]
Verbosity: TypeAlias = Annotated[
    int,
    typer.Option(
        "-v",
        "--v",
        min=0,
        metavar="LEVEL",
        help=(
            "Log level; 0 logs a line per scheduling attempt, 4 adds debug lines, 10 the scores of "
            "the three best nodes of each attempt."
        ),
        rich_help_panel=_LOGGING,
    ),
]
Format: TypeAlias = Annotated[
    LoggingFormat | None,
    typer.Option(
        "--logging-format",
        help="Default: text on a terminal, otherwise JSON.",
        rich_help_panel=_LOGGING,
    ),
]
Profiling: TypeAlias = Annotated[
    GoBool | None,
    typer.Option(
        "--profiling",
        parser=parse_boolean,
        metavar=BOOLEAN,
        help="Serve /debug/profile; overrides enableProfiling of the configuration.",
        show_default="enableProfiling",
        rich_help_panel=_OTHER,
    ),
]
ContentionProfiling: TypeAlias = Annotated[
    GoBool | None,
    typer.Option(
        "--contention-profiling",
        parser=parse_boolean,
        metavar=BOOLEAN,
        help="Accepted without effect: there are no locks to profile.",
        show_default="enableContentionProfiling",
        rich_help_panel=_OTHER,
    ),
]
Version: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--version",
        metavar=f"{BOOLEAN}|raw|VERSION",
        is_eager=True,
        callback=print_version_like_kube_scheduler,
        help="Print the version and exit; raw prints more. A version is accepted without effect.",
        rich_help_panel=_OTHER,
    ),
]
Record: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--record",
        file_okay=False,
        metavar="DIR",
        help="Record all events and decisions in new files of this folder, for stowage replay.",
        rich_help_panel=_RECORDING,
    ),
]
RecordMaxSize: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--record-max-size",
        parser=parse_size,
        metavar="QUANTITY",
        help="Size of all recordings in the folder. The oldest segments are removed.",
        show_default="1Gi",
        rich_help_panel=_RECORDING,
    ),
]
RecordMaxAge: TypeAlias = Annotated[
    Duration | None,
    typer.Option(
        "--record-max-age",
        parser=parse_duration,
        metavar="DURATION",
        help="Age of the recordings in the folder. Segments that ended before are removed.",
        show_default="24h0m0s",
        rich_help_panel=_RECORDING,
    ),
]
Anonymise: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--anonymise",
        help="Replace names in the recording by hashes, with a random key that is not recorded.",
        rich_help_panel=_RECORDING,
    ),
]
