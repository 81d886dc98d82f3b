"""Flags of all questions: the cluster, the profiles, the format of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from stowage.cli.flag_groups import FlagGroup, Panel

_CLUSTER = Panel("The cluster")


def parse_time(text: str) -> datetime:
    """The time of a flag; in UTC unless it names another offset.

    Raises:
        typer.BadParameter: The text is no time.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        expected = "a time such as 2026-05-01T12:00:00Z"
        raise typer.BadParameter(f"{text!r} (expected {expected})") from error
    return at.replace(tzinfo=at.tzinfo or UTC)


class OutputFormat(StrEnum):
    """The formats of answers; ``wide`` is a table that leaves nothing out."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


Output: TypeAlias = Annotated[
    OutputFormat, typer.Option("--output", "-o", help="Format of the answer.")
]


class ClusterFlags(FlagGroup, frozen=True):
    """The flags that name the cluster, the profiles and the feature gates."""

    kubeconfig: Annotated[Path | None, _CLUSTER.file(help="As kubectl's.")] = None
    context: Annotated[str | None, _CLUSTER.option(metavar="NAME", help="As kubectl's.")] = None
    files: Annotated[
        list[Path] | None,
        _CLUSTER.option(
            "--from",
            metavar="FILE",
            help="Objects instead of a running cluster: a file of stowage dump, of kubectl get -o "
            "json or yaml, manifests; - reads standard input. May be repeated. Or a segment of a "
            "recording, which is read with those that follow it, or a folder with recordings: its "
            "newest one.",
        ),
    ] = None
    at: Annotated[
        datetime | None,
        _CLUSTER.option(
            parser=parse_time,
            metavar="TIME",
            help="Of a recording: the cluster as of this time, e.g. 2026-05-01T12:00:00Z.",
        ),
    ] = None
    until: Annotated[
        str | None,
        _CLUSTER.option(
            metavar="[NAMESPACE/]POD",
            help="Of a recording: the cluster before the last attempt of this pod, or before it "
            "got its node.",
        ),
    ] = None
    config: Annotated[
        Path | None,
        _CLUSTER.option(
            metavar="FILE",
            help="KubeSchedulerConfiguration with the profiles that answer. Default: "
            "kube-scheduler's default profile; of a recording: the recorded ones.",
        ),
    ] = None
    configmap: Annotated[
        str | None,
        _CLUSTER.option(
            metavar="NAMESPACE/NAME[:KEY]",
            help="ConfigMap of the cluster with the profiles, instead of --config.",
        ),
    ] = None
    feature_gates: Annotated[
        list[str] | None,
        _CLUSTER.option(
            metavar="NAME=BOOL,...",
            help="Feature gates of the scheduler that decides, as for stowage run; may be "
            "repeated.",
        ),
    ] = None


def split_lists(values: Sequence[str] | None) -> list[str]:
    """The values of a flag that may be repeated and takes lists with commas."""
    names = (name.strip() for value in values or () for name in value.split(","))
    return [name for name in names if name]
