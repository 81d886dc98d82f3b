"""``stowage record``: records what happens in a cluster, beside any scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stowage.api.values.duration import Duration, parse_duration
from stowage.cli.ask import flags
from stowage.cli.lazy_commands import single_command_app
from stowage.cli.run_flags import Anonymise, parse_size

_RECORDING = "Recording"


def record(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", file_okay=False, help="The folder of recordings.")
    ],
    max_size: Annotated[
        int | None,
        typer.Option(
            parser=parse_size,
            metavar="QUANTITY",
            help="Size of all recordings in the folder. The oldest segments are removed.",
            show_default="1Gi",
            rich_help_panel=_RECORDING,
        ),
    ] = None,
    max_age: Annotated[
        Duration | None,
        typer.Option(
            parser=parse_duration,
            metavar="DURATION",
            help="Age of the recordings in the folder. Segments that ended before are removed.",
            show_default="24h0m0s",
            rich_help_panel=_RECORDING,
        ),
    ] = None,
    anonymise: Anonymise = False,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = None,
    config: flags.ConfigFile = None,
    configmap: flags.ConfigMap = None,
) -> None:
    """Record what happens in a cluster in new files of a folder, for stowage replay.

    It only gets, lists and watches, beside any scheduler. The profiles are those with which the
    recording is replayed. The command runs until Ctrl-C or SIGTERM.
    """
    # Imported late: --help does not need the Kubernetes client and the plugins.
    from stowage.cli.ask.flags import ClusterFlags  # noqa: PLC0415
    from stowage.cli.observing import record_cluster  # noqa: PLC0415
    from stowage.recording.limits import RecordingLimits  # noqa: PLC0415

    asked = ClusterFlags(kubeconfig, context, None, config, configmap)
    limits = RecordingLimits(max_size or 2**30, max_age or 86_400.0)
    raise typer.Exit(record_cluster(asked, folder, limits, anonymises=anonymise))


app = single_command_app(record)
