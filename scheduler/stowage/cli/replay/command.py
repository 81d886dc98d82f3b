"""The command and its flags."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from stowage.analysis.explain_pod import NotInCluster
from stowage.analysis.explanation import PodExplanation
from stowage.api.config.loading import InvalidConfiguration
from stowage.cli.ask.explain_tables import pod_tables
from stowage.cli.ask.flags import Output, OutputFormat, parse_time, split_lists
from stowage.cli.ask.object_names import pod_key
from stowage.cli.ask.output import Tables, write_answer
from stowage.cli.ask.recorded_objects import engine_time
from stowage.cli.config_file import print_errors
from stowage.cli.coroutines import run_coroutine
from stowage.cli.failures import os_error_text, print_error
from stowage.cli.flag_groups import FlagGroup, Panel, takes_flag_groups
from stowage.cli.imports import garbage_collection_paused
from stowage.cli.lazy_commands import single_command_app
from stowage.cli.replay.comparison import Changes, Comparison
from stowage.cli.replay.comparison_tables import comparison_tables
from stowage.cli.replay.repetition import Repetition, last_attempt
from stowage.cli.replay.report import report_tables
from stowage.cli.replay.report_file import write_report
from stowage.cli.terminal import terminal
from stowage.engine import ReplayDiverged
from stowage.recording.frames import UnreadableRecording
from stowage.recording.reader import Recording, find_recording

_OTHERWISE = Panel("Decide otherwise")


class OtherwiseFlags(FlagGroup, frozen=True):
    """The flags about other decisions than the recorded ones."""

    config: Annotated[
        Path | None,
        _OTHERWISE.option(
            metavar="FILE",
            help="KubeSchedulerConfiguration to decide with instead of the recorded one.",
        ),
    ] = None
    weights: Annotated[
        list[str] | None,
        _OTHERWISE.option(
            metavar="PLUGIN=WEIGHT,...", help="Other weights of score plugins, in all profiles."
        ),
    ] = None


@takes_flag_groups
def replay(
    recording: Annotated[
        Path,
        typer.Argument(
            metavar="RECORDING",
            exists=True,
            help="A segment of a recording, which is read with those that follow it, or a folder "
            "with recordings: its newest one.",
        ),
    ],
    until: Annotated[
        str | None,
        typer.Option(
            metavar="[NAMESPACE/]POD",
            help="Stop at the last attempt of this pod, and explain it as of then.",
        ),
    ] = None,
    at: Annotated[
        datetime | None,
        typer.Option(
            parser=parse_time, metavar="TIME", help="Stop at this time, e.g. 2026-05-01T12:00:00Z."
        ),
    ] = None,
    *,
    otherwise: OtherwiseFlags,
    report: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, metavar="FILE.html", help="Write the whole answer to a page as well."
        ),
    ] = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Repeat what a scheduler did, from a recording of stowage run --record.

    Every call is repeated with its events, and every instruction is compared with the recorded
    one. The first difference is an error that names the call, the pod and the instruction.

    With --config or --weights: show what would have been decided otherwise. Events from outside
    happen as recorded; bindings and preemptions are those of the new decisions. A recording that
    has no decisions, or whose first segments are gone, is replayed like this in any case.
    """
    changes = Changes(otherwise.config, split_lists(otherwise.weights))
    _check_usage(changes, until, report)
    console = terminal(stderr=True)
    with _failures_reported(console), garbage_collection_paused():
        answer, tables = run_coroutine(_answer(find_recording(recording), changes, until, at))
        if report is not None:
            write_report(report, tables(answer, True))
        write_answer(answer, output, tables)


def _check_usage(changes: Changes, until: str | None, report: Path | None) -> None:
    if changes and until is not None:
        raise typer.BadParameter("--until explains recorded decisions: not with other ones")
    if report is not None and report.suffix not in (".html", ".htm"):
        raise typer.BadParameter(f"--report: {report} (expected a name that ends in .html)")


# Plugins may start tasks and timers, so there is an event loop; nothing in it runs meanwhile.


async def _answer(
    path: Path, changes: Changes, until: str | None, at: datetime | None
) -> tuple[msgspec.Struct, Tables]:
    ends_at = engine_time(path, at)
    with Recording(path) as recording:
        header = recording.header
    if until is not None and not header.is_repeatable:
        found = "begins with a checkpoint" if header.checkpoint else "has no decisions to explain"
        raise NotInCluster(
            f"the recording {found}; ask what the recorded profiles decide: "
            f"stowage explain pod {until} --from {path} --until {until}"
        )
    if until is not None:
        return _explain(path, pod_key(until), ends_at), pod_tables
    if changes or not header.is_repeatable:
        return Comparison(path, ends_at).compare(changes), comparison_tables
    with Recording(path) as recording:
        return Repetition(recording).run(ends_at), report_tables


def _explain(path: Path, key: str, ends_at: float | None) -> PodExplanation:
    with Recording(path) as recording:
        attempt = last_attempt(recording, key, ends_at)
    with Recording(path) as recording:
        return Repetition(recording).explain(key, attempt)


@contextmanager
def _failures_reported(console: Console) -> Iterator[None]:
    """Print why a recording cannot be replayed, and exit with 1."""
    try:
        yield
    except InvalidConfiguration as invalid:
        print_errors(console, invalid)
        raise typer.Exit(1) from invalid
    except (UnreadableRecording, NotInCluster, ReplayDiverged) as error:
        print_error(console, error)
        raise typer.Exit(1) from error
    except BrokenPipeError:
        raise  # the reader of the answer, such as head, has enough
    except OSError as error:
        print_error(console, os_error_text(error))
        raise typer.Exit(1) from error


app = single_command_app(replay)
