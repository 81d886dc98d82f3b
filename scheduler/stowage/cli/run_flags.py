"""The flags of ``stowage run``: kube-scheduler's names wherever kube-scheduler has the flag."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from stowage.api.values.duration import Duration, parse_duration
from stowage.cli.go_flags import GoBool

_SERVER = "API server"
_SCHEDULING = "Scheduling"
_SERVING = "Health and metrics"
_ELECTION = "Leader election"
_LOGGING = "Logging"


class LoggingFormat(StrEnum):
    """How log lines look."""

    JSON = "json"
    TEXT = "text"


Kubeconfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        metavar="FILE",
        help="Kubeconfig of the cluster. Without it: $KUBECONFIG or ~/.kube/config, else the "
        "service account of the pod this runs in.",
        rich_help_panel=_SERVER,
    ),
]
Master: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Address of the API server, in place of the kubeconfig's.",
        rich_help_panel=_SERVER,
    ),
]
KubeApiQps: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--kube-api-qps",
        help="Requests a second to the API server; 0 or less sets no limit.",
        show_default="clientConnection.qps",
        rich_help_panel=_SERVER,
    ),
]
KubeApiBurst: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--kube-api-burst",
        help="How many of them may be made at once after a pause.",
        show_default="clientConnection.burst",
        rich_help_panel=_SERVER,
    ),
]
ConfigFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1), read once. Flags win "
        "over it.",
        rich_help_panel=_SCHEDULING,
    ),
]
ConfigMap: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAMESPACE/NAME[:KEY]",
        help="ConfigMap with the configuration, in place of --config; the key is config.yaml "
        "unless given. Flags win over it. An edit takes effect while the scheduler runs; one that "
        "is wrong changes nothing and is answered by an Event on the ConfigMap.",
        rich_help_panel=_SCHEDULING,
    ),
]
SchedulerName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="spec.schedulerName of the pods to schedule, when there is neither --config nor "
        "--configmap.",
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
        help="A pod is tried again after this long even if nothing has changed for it.",
        show_default="5m0s",
        rich_help_panel=_SCHEDULING,
    ),
]
SecurePort: TypeAlias = Annotated[
    int,
    typer.Option(
        min=0,
        max=65535,
        help="HTTPS port of /healthz, /livez, /readyz, /metrics, /configz and /debug; 0 serves "
        "none of them.",
        rich_help_panel=_SERVING,
    ),
]
BindAddress: TypeAlias = Annotated[
    str, typer.Option(help="Address to serve on.", rich_help_panel=_SERVING)
]
TlsCertFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        metavar="FILE",
        help="PEM certificate (chain), reread when it changes. Without it, a self-signed one.",
        rich_help_panel=_SERVING,
    ),
]
TlsPrivateKeyFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        exists=True, dir_okay=False, metavar="FILE", help="PEM key.", rich_help_panel=_SERVING
    ),
]
LeaderElect: TypeAlias = Annotated[
    GoBool | None,
    typer.Option(
        "--leader-elect",
        case_sensitive=False,
        help="Schedule only while holding the Lease, so that replicas stand by.",
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
        help="How long others wait for a leader that does not renew.",
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
        help="How long a leader tries to renew before it steps down.",
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
        help="Between two tries.",
        show_default="2s",
        rich_help_panel=_ELECTION,
    ),
]
LeaseName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--leader-elect-resource-name",
        help="Name of the Lease.",
        show_default="stowage",
        rich_help_panel=_ELECTION,
    ),
]
LeaseNamespace: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--leader-elect-resource-namespace",
        help="Namespace of the Lease.",
        show_default="kube-system",
        rich_help_panel=_ELECTION,
    ),
]
Verbosity: TypeAlias = Annotated[
    int,
    typer.Option(
        "-v", "--v", min=0, help="0: a line an attempt; 4: debug.", rich_help_panel=_LOGGING
    ),
]
Format: TypeAlias = Annotated[
    LoggingFormat | None,
    typer.Option(
        "--logging-format",
        help="Without it: text on a terminal, JSON elsewhere.",
        rich_help_panel=_LOGGING,
    ),
]
