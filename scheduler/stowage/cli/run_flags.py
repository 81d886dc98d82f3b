"""The flags of ``stowage run``, named as in kube-scheduler where it has the flag."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from stowage.api.values.duration import Duration, parse_duration
from stowage.cli.go_flags import GoBool

_SERVER = "API server"
_SCHEDULING = "Scheduling"
_ELECTION = "Leader election"
_LOGGING = "Logging"


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
LeaderElect: TypeAlias = Annotated[
    GoBool | None,
    typer.Option(
        "--leader-elect",
        case_sensitive=False,
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
Verbosity: TypeAlias = Annotated[
    int,
    typer.Option(
        "-v",
        "--v",
        min=0,
        metavar="LEVEL",
        help="Log level; 0 logs a line per scheduling attempt, 4 and above logs everything.",
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
