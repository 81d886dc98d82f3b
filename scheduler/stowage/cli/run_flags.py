"""The flags of ``stowage run``, named as in kube-scheduler where it has the flag."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from stowage.api.values.duration import Duration
from stowage.api.values.quantity import parse_quantity
from stowage.cli.flag_groups import FlagGroup, Panel
from stowage.cli.go_flags import BOOLEAN, GoBool
from stowage.cli.version import print_version_like_kube_scheduler

_SERVER = Panel("API server")
_SCHEDULING = Panel("Scheduling")
_ELECTION = Panel("Leader election")
_DECISIONS = Panel("Decisions")
_LOGGING = Panel("Logging")
_RECORDING = Panel("Recording")
_OTHER = Panel("Other")

_FIVE_MINUTES_S = 300.0
_DAY_S = 86_400.0
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


class ApiServerFlags(FlagGroup, frozen=True):
    """The flags about the API server and the requests to it."""

    kubeconfig: Annotated[
        Path | None,
        _SERVER.file(
            help="Path to the kubeconfig. Default: $KUBECONFIG or ~/.kube/config, otherwise the "
            "service account of the pod.",
        ),
    ] = None
    master: Annotated[
        str | None,
        _SERVER.option(metavar="URL", help="Address of the API server; overrides the kubeconfig."),
    ] = None
    kube_api_qps: Annotated[
        float | None,
        _SERVER.option(
            metavar="FLOAT",
            help="Rate limit of requests to the API server, per second; 0 or less for no limit.",
            show_default="clientConnection.qps",
        ),
    ] = None
    kube_api_burst: Annotated[
        int | None,
        _SERVER.option(
            metavar="INT",
            help="Number of requests to the API server at once, above the rate limit.",
            show_default="clientConnection.burst",
        ),
    ] = None
    kube_api_content_type: Annotated[
        str | None,
        _SERVER.option(
            metavar="TYPE",
            help="Accepted without effect: requests to the API server are in JSON.",
            show_default="clientConnection.contentType",
        ),
    ] = None


class SchedulingFlags(FlagGroup, frozen=True):
    """The flags about the configuration, and about what it does not hold."""

    config: Annotated[
        Path | None,
        _SCHEDULING.option(
            metavar="FILE",
            help="Path to a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1). The file "
            "is read once. Flags override it.",
        ),
    ] = None
    configmap: Annotated[
        str | None,
        _SCHEDULING.option(
            metavar="NAMESPACE/NAME[:KEY]",
            help="ConfigMap with the configuration, instead of --config; the default key is "
            "config.yaml. Flags override it. A valid edit takes effect without a restart. An "
            "invalid edit changes nothing and is reported by an Event on the ConfigMap.",
        ),
    ] = None
    policy_config_file: Annotated[
        Path | None,
        _SCHEDULING.option(
            metavar="FILE",
            help="Path to a Policy of kube-scheduler 1.12, instead of --config. The file is read "
            "once.",
        ),
    ] = None
    algorithm_provider: Annotated[
        str | None,
        _SCHEDULING.option(
            metavar="NAME",
            help="Algorithm provider of kube-scheduler 1.12, instead of --config: DefaultProvider "
            "or ClusterAutoscalerProvider.",
        ),
    ] = None
    scheduler_name: Annotated[
        str | None,
        _SCHEDULING.option(
            metavar="NAME",
            help="spec.schedulerName of the pods to schedule; only without --config and "
            "--configmap.",
            show_default="stowage",
        ),
    ] = None
    pod_max_in_unschedulable_pods_duration: Annotated[
        Duration | None,
        _SCHEDULING.duration(
            help="A pod that is unschedulable for this long is tried again without any event.",
            show_default="5m0s",
        ),
    ] = None
    feature_gates: Annotated[
        list[str] | None,
        _SCHEDULING.option(
            metavar="NAME=BOOL,...",
            help="Feature gates of kube-scheduler v1.36, as in AllBeta=false,GenericWorkload=true; "
            "may be repeated. A gate without effect here is named in the log.",
        ),
    ] = None
    write_config_to: Annotated[
        Path | None,
        _SCHEDULING.option(
            metavar="FILE",
            help="Write the effective configuration, without private keys, to this new file and "
            "exit.",
        ),
    ] = None

    @property
    def max_in_unschedulable_s(self) -> float:
        """How long a pod is unschedulable before it is tried again."""
        return self.pod_max_in_unschedulable_pods_duration or _FIVE_MINUTES_S


class LeaderElectionFlags(FlagGroup, frozen=True):
    """The flags about the Lease; each overrides a field of the configuration."""

    leader_elect: Annotated[
        GoBool | None,
        _ELECTION.boolean(
            help="Schedule only while this replica holds the Lease.",
            show_default="true",
        ),
    ] = None
    leader_elect_lease_duration: Annotated[
        Duration | None,
        _ELECTION.duration(
            help="How long candidates wait for a leader that does not renew the Lease.",
            show_default="15s",
        ),
    ] = None
    leader_elect_renew_deadline: Annotated[
        Duration | None,
        _ELECTION.duration(
            help="How long a leader tries to renew the Lease before it exits.", show_default="10s"
        ),
    ] = None
    leader_elect_retry_period: Annotated[
        Duration | None,
        _ELECTION.duration(
            help="Time between two attempts to acquire or renew the Lease.", show_default="2s"
        ),
    ] = None
    leader_elect_resource_lock: Annotated[
        str | None,
        _ELECTION.option(
            metavar="KIND",
            help="Kind of the object that is locked; only leases.",
            show_default="leases",
        ),
    ] = None
    leader_elect_resource_name: Annotated[
        str | None,
        _ELECTION.option(metavar="NAME", help="Name of the Lease.", show_default="stowage"),
    ] = None
    leader_elect_resource_namespace: Annotated[
        str | None,
        _ELECTION.option(
            metavar="NAMESPACE", help="Namespace of the Lease.", show_default="kube-system"
        ),
    ] = None


class OtherFlags(FlagGroup, frozen=True):
    """The flags about metrics, profiles and the version."""

    disabled_metrics: Annotated[
        list[str] | None,
        _OTHER.option(
            metavar="NAMES",
            parser=_metric_names,
            help="Complete names of metrics that are not exposed, as in a_total,b; may be "
            "repeated.",
        ),
    ] = None
    profiling: Annotated[
        GoBool | None,
        _OTHER.boolean(
            help="Serve /debug/profile; overrides enableProfiling of the configuration.",
            show_default="enableProfiling",
        ),
    ] = None
    contention_profiling: Annotated[
        GoBool | None,
        _OTHER.boolean(
            help="Accepted without effect: there are no locks to profile.",
            show_default="enableContentionProfiling",
        ),
    ] = None
    version: Annotated[
        str | None,
        _OTHER.option(
            metavar=f"{BOOLEAN}|raw|VERSION",
            is_eager=True,
            callback=print_version_like_kube_scheduler,
            help="Print the version and exit; raw prints more. A version is accepted without "
            "effect.",
        ),
    ] = None

    @property
    def disabled_metric_names(self) -> frozenset[str]:
        """The names in the lists of ``--disabled-metrics``."""
        lists = self.disabled_metrics or ()
        return frozenset(name for each in lists for name in each.split(",") if name)


class DecisionLogFlags(FlagGroup, frozen=True):
    """The flags about the files of decisions."""

    decision_log: Annotated[
        Path | None,
        _DECISIONS.option(
            file_okay=False,
            metavar="DIR",
            help="Write every decision as a line of JSON to files in this directory; one directory "
            "for each replica.",
        ),
    ] = None
    decision_log_file_size: Annotated[
        int,
        _DECISIONS.option(min=1, metavar="MIB", help="Begin a new file after this many MiB."),
    ] = 100
    decision_log_file_age: Annotated[
        Duration | None,
        _DECISIONS.duration(help="Begin a new file after this time.", show_default="24h"),
    ] = None
    decision_log_files: Annotated[
        int,
        _DECISIONS.option(
            min=1, metavar="INT", help="Number of files to keep; the oldest ones are deleted."
        ),
    ] = 10

    @property
    def max_file_age_s(self) -> float:
        """The age at which a new file begins."""
        return self.decision_log_file_age or _DAY_S


class LoggingFlags(FlagGroup, frozen=True):
    """The flags about log lines."""

    verbosity: Annotated[
        int,
        _LOGGING.option(
            "-v",
            "--v",
            min=0,
            metavar="LEVEL",
            help="Log level; 0 logs a line per scheduling attempt, 4 adds debug lines, 10 the "
            "scores of the three best nodes of each attempt.",
        ),
    ] = 0
    logging_format: Annotated[
        LoggingFormat | None,
        _LOGGING.option(help="Default: text on a terminal, otherwise JSON."),
    ] = None


RecordingSize: TypeAlias = Annotated[
    int | None,
    _RECORDING.option(
        parser=parse_size,
        metavar="QUANTITY",
        help="Size of all recordings in the folder. The oldest segments are removed.",
        show_default="1Gi",
    ),
]
RecordingAge: TypeAlias = Annotated[
    Duration | None,
    _RECORDING.duration(
        help="Age of the recordings in the folder. Segments that ended before are removed.",
        show_default="24h0m0s",
    ),
]
Anonymise: TypeAlias = Annotated[
    bool,
    _RECORDING.option(
        "--anonymise",
        help="Replace names in the recording by hashes, with a random key that is not recorded.",
    ),
]


class RecordingFlags(FlagGroup, frozen=True):
    """The flags about the recording of a running scheduler."""

    record: Annotated[
        Path | None,
        _RECORDING.option(
            file_okay=False,
            metavar="DIR",
            help="Record all events and decisions in new files of this folder, for stowage replay.",
        ),
    ] = None
    record_max_size: RecordingSize = None
    record_max_age: RecordingAge = None
    anonymise: Anonymise = False
