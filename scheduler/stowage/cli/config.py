"""``stowage config``: check and show configurations."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console
from rich.markup import escape

from stowage.api.config.loading import (
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    configuration_hash,
    settings_without_effect,
    to_builtins,
)
from stowage.cli.config_file import print_errors, read_configuration

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Check and show configurations.",
    rich_markup_mode="rich",
)

_FILE_HELP = "KubeSchedulerConfiguration, YAML or JSON."


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help=_FILE_HELP)],
) -> None:
    """Check a configuration file and list all errors; exit with 1 if there are any."""
    configuration, effective = _accepted(file)
    names = ", ".join(profile.scheduler_name for profile in configuration.profiles)
    text = f"{escape(str(file))} (profiles: {names}; hash {configuration_hash(effective)})"
    Console(highlight=False, soft_wrap=True).print(f"[green]ok:[/green] {text}")


@app.command()
def show(
    file: Annotated[
        Path | None, typer.Argument(help=f"{_FILE_HELP} Default: the default configuration.")
    ] = None,
    effective: Annotated[
        bool,
        typer.Option(
            "--effective",
            help="Show every plugin in its order, every weight and every argument, as /configz of "
            "a running scheduler.",
        ),
    ] = False,
) -> None:
    """Print a configuration with all defaults."""
    configuration, shown = _accepted(file)
    if effective:
        sys.stdout.write(f"# hash {configuration_hash(shown)}\n")
    builtins = shown if effective else to_builtins(configuration)
    yaml.safe_dump(_plain(builtins), sys.stdout, sort_keys=False)


def _accepted(file: Path | None) -> tuple[KubeSchedulerConfiguration, dict[str, Any]]:
    """The configuration and its effective form; exits if the configuration is invalid."""
    # Imported late: --help does not need numpy and the plugins.
    from stowage.cli.effective import effective_builtins  # noqa: PLC0415
    from stowage.cli.plugin_discovery import discover_plugins  # noqa: PLC0415
    from stowage.cli.profiles import make_frameworks, with_plugin_errors  # noqa: PLC0415

    console = Console(stderr=True, highlight=False)
    registry = discover_plugins()
    for plugin, fault in registry.faults.items():
        console.print(f"[yellow]plugin {plugin} not loaded:[/yellow] {escape(fault)}")
    try:
        configuration = with_plugin_errors(lambda: read_configuration(file), lambda: registry)
        frameworks = make_frameworks(configuration, registry)
    except InvalidConfiguration as invalid:
        print_errors(console, invalid)
        raise typer.Exit(1) from invalid
    for text in settings_without_effect(configuration):
        console.print(f"[yellow]without effect:[/yellow] {text}")
    return configuration, effective_builtins(configuration, frameworks, registry)


def _plain(value: object) -> object:
    """The value with lists instead of tuples, for YAML."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
