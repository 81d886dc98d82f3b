"""``stowage run``: runs the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from stowage.api.config.loading import (
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    settings_without_effect,
)
from stowage.cli.config_file import print_errors
from stowage.cli.flag_groups import takes_flag_groups
from stowage.cli.flag_values import flag_values
from stowage.cli.flags_without_effect import accepts_flags_without_effect, settings_of_flags
from stowage.cli.go_flags import is_true
from stowage.cli.imports import garbage_collection_paused
from stowage.cli.lazy_commands import single_command_app
from stowage.cli.lean_libraries import lean_libraries
from stowage.cli.run_command import RunCommand
from stowage.cli.run_flags import (
    ApiServerFlags,
    DecisionLogFlags,
    LeaderElectionFlags,
    LoggingFlags,
    OtherFlags,
    RecordingFlags,
    SchedulingFlags,
)
from stowage.cli.serving_flags import ServingFlags

if TYPE_CHECKING:
    from rich.console import Console

    from stowage.operator.run_options import RunOptions


@accepts_flags_without_effect
@takes_flag_groups
def run(
    context: typer.Context,
    *,
    api_server: ApiServerFlags,
    scheduling: SchedulingFlags,
    serving: ServingFlags,
    election: LeaderElectionFlags,
    other: OtherFlags,
    decisions: DecisionLogFlags,
    logs: LoggingFlags,
    recording: RecordingFlags,
    **without_effect: list[str] | None,
) -> None:
    """Schedule the pods of a cluster until SIGTERM or Ctrl-C.

    Flags have the same names and meanings as in kube-scheduler. A flag overrides the file of
    --config or the ConfigMap of --configmap, which overrides the defaults. The environment variable
    KUBE_MAX_PD_VOLS is the limit of MaxEBSVolumeCount, MaxGCEPDVolumeCount and
    MaxAzureDiskVolumeCount. The command exits with status 1 when it loses the Lease.
    """
    # Imported late: --help does not need Kopf and the Kubernetes client.
    with garbage_collection_paused(), lean_libraries():
        from stowage.cli import composition  # noqa: PLC0415
        from stowage.cli.effective import write_new_file  # noqa: PLC0415
        from stowage.cli.start_options import FlagGroups, start_options  # noqa: PLC0415

    log_failure = composition.failure_log(logs.verbosity, logs.logging_format)
    groups = FlagGroups(
        api_server, scheduling, serving, election, other, decisions, logs, recording
    )
    with _failures_reported(composition.CANNOT_START, log_failure):
        configuration, options = start_options(groups, flag_values(context))
        if scheduling.write_config_to is not None:
            shown = options.configuration.shown
            write_new_file("--write-config-to", scheduling.write_config_to, shown)
            raise typer.Exit
        without_effect |= _own_without_effect(other)
        composition.log_settings_without_effect(
            [*_without_effect(configuration, options), *settings_of_flags(without_effect)]
        )
        exit_status = composition.run_scheduler(options)
    raise typer.Exit(exit_status)


def _own_without_effect(other: OtherFlags) -> dict[str, list[str] | None]:
    """The values without effect of flags whose other values have one."""
    return {
        "version": [other.version] if other.version else None,
        "contention_profiling": ["true"] if is_true(other.contention_profiling) else None,
    }


def _without_effect(
    configuration: KubeSchedulerConfiguration, options: RunOptions
) -> Iterator[str]:
    """The settings of the configuration, the feature gates and TLS that have no effect."""
    yield from settings_without_effect(configuration)
    for gate in options.feature_gates.without_effect():
        yield f"--feature-gates={gate}: nothing reads this gate"
    if options.serving is not None:
        yield from options.serving.tls.without_effect()


@contextmanager
def _failures_reported(
    cannot_start: tuple[type[Exception], ...],
    log_failure: Callable[[str, list[str]], None] | None,
) -> Iterator[None]:
    """Report why the scheduler cannot start, in the log or on the terminal, and exit with 1."""
    try:
        yield
    except InvalidConfiguration as invalid:
        if log_failure is not None:
            log_failure("configuration refused", [str(each) for each in invalid.errors])
        else:
            print_errors(_console(), invalid)
        raise typer.Exit(1) from invalid
    except cannot_start as error:
        if log_failure is not None:
            log_failure("cannot run", [_reason(error)])
        else:
            console = _console()
            console.print("cannot run:", style="red", end=" ")
            console.print(_reason(error), markup=False)
        raise typer.Exit(1) from error


def _reason(error: Exception) -> str:
    # Imported late: it imports Rich.
    from stowage.cli.failures import os_error_text  # noqa: PLC0415

    text = os_error_text(error) if isinstance(error, OSError) else str(error)
    return text or repr(error)


def _console() -> Console:
    # Imported late: Rich is not needed to schedule.
    from stowage.cli.terminal import terminal  # noqa: PLC0415

    return terminal(stderr=True)


app = single_command_app(run, RunCommand)
