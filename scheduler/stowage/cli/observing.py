"""Runs an observer that records a cluster, until a signal or a failure of the recording."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from rich.markup import escape

from stowage.cli.ask.flags import ClusterFlags
from stowage.cli.ask.source import failures_reported, read_profiles
from stowage.cli.configurator import Configurator
from stowage.cli.plugin_discovery import discover_plugins
from stowage.cli.terminal import terminal
from stowage.operator.clock import Clock
from stowage.operator.configuration.live_configuration import LoadedConfiguration
from stowage.operator.logging.setup import configure_logging
from stowage.operator.observer import Observed, ObserverOptions, observe
from stowage.operator.run_options import RecordingOptions
from stowage.recording.limits import RecordingLimits

_MAX_IN_UNSCHEDULABLE_S = 300.0
"""Default of ``--pod-max-in-unschedulable-pods-duration``."""


def record_cluster(
    flags: ClusterFlags, folder: Path, limits: RecordingLimits, *, anonymises: bool
) -> int:
    """Record; the exit status. Exits with 1 if the cluster cannot be watched."""
    console = terminal(stderr=True)
    configure_logging(json=False)
    with failures_reported(console):
        options = ObserverOptions(
            str(flags.kubeconfig) if flags.kubeconfig else None,
            flags.context,
            _loaded_configuration(flags),
            RecordingOptions(folder, limits, _MAX_IN_UNSCHEDULABLE_S, anonymises),
            lambda text: console.print(text, soft_wrap=True, markup=False),
        )
        observed = asyncio.run(_observe(options))
        if observed is None:
            console.print("interrupted before the first list; nothing is recorded")
            return 0
        colour = "[red]error:[/red] " if observed.end else ""
        console.print(f"{colour}{escape(_summary(observed))}", soft_wrap=True)
        return int(bool(observed.end))


def _loaded_configuration(flags: ClusterFlags) -> LoadedConfiguration:
    configuration = read_profiles(flags)
    configurator = Configurator(discover_plugins(), _MAX_IN_UNSCHEDULABLE_S)
    return configurator.describe(configuration, configurator.settings(configuration))


async def _observe(options: ObserverOptions) -> Observed | None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return await observe(options, stop, Clock())


def _summary(observed: Observed) -> str:
    text = (
        f"{observed.path}: {observed.num_events} events in {observed.num_calls} calls; "
        f"the recordings in the folder take {observed.num_bytes / 1024:.1f} KiB"
    )
    return f"{text}; {observed.end}" if observed.end else text
