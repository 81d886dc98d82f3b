"""``stowage config``: check, show and convert configurations."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from stowage.api.config.loading import InvalidConfiguration, configuration_hash, to_builtins
from stowage.cli.plain_help import PlainCommand, PlainGroup
from stowage.cli.terminal import terminal

if TYPE_CHECKING:
    from stowage.cli.config_report import ConfigReport

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Check, show and convert configurations.",
    rich_markup_mode=None,
    cls=PlainGroup,
)

FeatureGates: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-gates",
        metavar="NAME=BOOL,...",
        help="Feature gates of the scheduler, as for stowage run; may be repeated.",
    ),
]
_FILE_HELP = "KubeSchedulerConfiguration or Policy, YAML or JSON; - reads standard input."


@app.command(cls=PlainCommand)
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help=_FILE_HELP)],
    feature_gates: FeatureGates = None,
) -> None:
    """Check configuration files; list all errors, and the settings without effect.

    Exits with 1 if there are errors in any of the files or in the feature gates.
    """
    report = _report(feature_gates)
    valid = [report.describe(file) for file in files]
    raise typer.Exit(0 if all(valid) else 1)


@app.command(cls=PlainCommand)
def show(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help=f"{_FILE_HELP} Default: the default configuration."),
    ] = None,
    effective: Annotated[
        bool,
        typer.Option(
            "--effective",
            help="Show every plugin in its order, every weight and every argument, as /configz of "
            "a running scheduler.",
        ),
    ] = False,
    feature_gates: FeatureGates = None,
) -> None:
    """Print a configuration with all defaults."""
    from stowage.cli.effective import as_yaml  # noqa: PLC0415 - --help does not need numpy

    accepted = _report(feature_gates).accepted(file)
    if accepted is None:
        raise typer.Exit(1)
    if effective:
        sys.stdout.write(f"# hash {configuration_hash(accepted.effective)}\n")
    sys.stdout.write(as_yaml(accepted.effective if effective else to_builtins(accepted.decoded)))


@app.command(cls=PlainCommand)
def convert(
    policy: Annotated[
        Path,
        typer.Argument(
            metavar="POLICY",
            help="Policy of kube-scheduler 1.12, YAML or JSON; - reads standard input.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to this new file, not to standard output."
        ),
    ] = None,
) -> None:
    """Convert a Policy to an equal KubeSchedulerConfiguration."""
    # Imported late: --help does not need numpy and the plugins.
    from stowage.cli.effective import as_yaml  # noqa: PLC0415

    report = _report(None)
    converted = report.converted(policy)
    if converted is None:
        raise typer.Exit(1)
    if output is None:
        sys.stdout.write(as_yaml(converted))
    elif not report.is_written(output, converted):
        raise typer.Exit(1)


def _report(feature_gates: list[str] | None) -> ConfigReport:
    # Imported late: --help does not need numpy and the plugins.
    from stowage.cli.config_file import print_errors  # noqa: PLC0415
    from stowage.cli.config_report import ConfigReport  # noqa: PLC0415

    try:
        return ConfigReport(feature_gates or ())
    except InvalidConfiguration as invalid:
        print_errors(terminal(stderr=True), invalid)
        raise typer.Exit(1) from invalid
