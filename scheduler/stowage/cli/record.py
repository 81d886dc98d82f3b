"""``stowage record``: records what happens in a cluster, beside any scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stowage.cli.ask.flags import ClusterFlags
from stowage.cli.flag_groups import Without, takes_flag_groups
from stowage.cli.lazy_commands import single_command_app
from stowage.cli.run_flags import Anonymise, RecordingAge, RecordingSize


@takes_flag_groups
def record(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", file_okay=False, help="The folder of recordings.")
    ],
    max_size: RecordingSize = None,
    max_age: RecordingAge = None,
    anonymise: Anonymise = False,
    *,
    cluster: Annotated[ClusterFlags, Without("files", "at", "until", "feature_gates")],
) -> None:
    """Record what happens in a cluster in new files of a folder, for stowage replay.

    It only gets, lists and watches, beside any scheduler. The profiles are those with which the
    recording is replayed. The command runs until Ctrl-C or SIGTERM.
    """
    # Imported late: --help does not need the Kubernetes client and the plugins.
    from stowage.cli.observing import record_cluster  # noqa: PLC0415
    from stowage.recording.limits import RecordingLimits  # noqa: PLC0415

    limits = RecordingLimits.of(max_size, max_age)
    raise typer.Exit(record_cluster(cluster, folder, limits, anonymises=anonymise))


app = single_command_app(record)
