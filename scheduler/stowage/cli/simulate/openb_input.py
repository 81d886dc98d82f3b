"""Reads the files and policies of ``stowage simulate openb``, and the files of ``tune openb``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console

from stowage.analysis.simulation.openb.experiment import OpenbExperiment, OpenbPolicy
from stowage.analysis.simulation.openb.trace import InvalidTrace, OpenbTrace, read_trace
from stowage.cli.ask.source import failures_reported
from stowage.cli.failures import print_error
from stowage.cli.imports import garbage_collection_paused
from stowage.cli.simulate.openb_policies import read_openb_policies
from stowage.experiments.experiment import fingerprint_of
from stowage.experiments.workload_experiment import plugin_versions

NodesFile: TypeAlias = Annotated[
    Path, typer.Option(dir_okay=False, metavar="NODES.csv", help="The nodes of the trace.")
]
PodsFiles: TypeAlias = Annotated[
    list[Path],
    typer.Option(
        dir_okay=False,
        metavar="PODS.csv",
        help="The pods of the trace, which is named after the file; may be repeated, for several "
        "traces with the same nodes.",
    ),
]

_PREFIX = "openb_pod_list_"


def trace_name(file: Path) -> str:
    """The name of the trace of a file of pods.

    Examples:
        >>> trace_name(Path("data/openb_pod_list_multigpu30.csv"))
        'multigpu30'
    """
    return file.stem.removeprefix(_PREFIX)


def read_experiments(
    nodes: Path, pods: Sequence[Path], policies: str, seeds: Sequence[int], console: Console
) -> list[OpenbExperiment]:
    """All experiments that the flags ask for.

    Raises:
        typer.Exit: With 1, a file or a policy is invalid; the reason is printed.
        OSError: A file cannot be read.
    """
    with failures_reported(console), garbage_collection_paused():
        traces = read_traces(nodes, pods, console)
        return list(_experiments(traces, read_openb_policies(policies, traces), seeds))


def read_traces(nodes: Path, pods: Sequence[Path], console: Console) -> list[OpenbTrace]:
    """The traces of a file of nodes and files of pods.

    Raises:
        typer.Exit: With 1, a file is invalid; the reason is printed.
        typer.BadParameter: Two traces have the same name.
        OSError: A file cannot be read.
    """
    of_nodes = (str(nodes), nodes.read_bytes())
    try:
        traces = [read_trace(trace_name(f), of_nodes, (str(f), f.read_bytes())) for f in pods]
    except InvalidTrace as invalid:
        print_error(console, invalid)
        raise typer.Exit(1) from invalid
    names = [trace.name for trace in traces]
    for name in names:
        if names.count(name) > 1:
            raise typer.BadParameter(f"--pods: two files for the trace {name}")
    return traces


def _experiments(
    traces: Sequence[OpenbTrace], policies: Sequence[OpenbPolicy], seeds: Sequence[int]
) -> Iterator[OpenbExperiment]:
    versions = plugin_versions()
    for trace in traces:
        read = fingerprint_of(trace)
        for policy in policies:
            for seed in seeds:
                fingerprint = fingerprint_of(read, policy.inputs, seed, versions)
                yield OpenbExperiment(trace, policy, seed, fingerprint)
