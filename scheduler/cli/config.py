"""``stowage config``: look at a configuration without running it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.console import Console
from rich.markup import escape

from scheduler.api.config import InvalidConfiguration, KubeSchedulerConfiguration, to_builtins
from scheduler.cli.config_file import print_mistakes, read_configuration

app = typer.Typer(
    no_args_is_help=True, help="Check and show configurations.", rich_markup_mode="rich"
)

_FILE_HELP = "KubeSchedulerConfiguration, YAML or JSON."


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help=_FILE_HELP)],
) -> None:
    """Say whether a file would be accepted, or everything that is wrong with it."""
    configuration = _accepted(file)
    names = ", ".join(profile.scheduler_name for profile in configuration.profiles)
    Console(highlight=False).print(f"[green]ok:[/green] {escape(str(file))} (profiles: {names})")


@app.command()
def show(
    file: Annotated[
        Path | None, typer.Argument(help=f"{_FILE_HELP} Without it: the defaults.")
    ] = None,
) -> None:
    """Print a configuration with all defaults filled in."""
    yaml.safe_dump(_plain(to_builtins(_accepted(file))), sys.stdout, sort_keys=False)


def _accepted(file: Path | None) -> KubeSchedulerConfiguration:
    # numpy and the plugins take a while to import; --help need not wait for them.
    from scheduler.cli.plugin_discovery import discover_plugins  # noqa: PLC0415
    from scheduler.cli.profiles import make_frameworks  # noqa: PLC0415

    console = Console(stderr=True, highlight=False)
    registry = discover_plugins()
    for plugin, fault in registry.faults.items():
        console.print(f"[yellow]plugin {plugin} not loaded:[/yellow] {escape(fault)}")
    try:
        configuration = read_configuration(file)
        make_frameworks(configuration, registry)
    except InvalidConfiguration as invalid:
        print_mistakes(console, invalid)
        raise typer.Exit(1) from invalid
    return configuration


def _plain(value: object) -> object:
    """Tuples as lists: YAML has only these."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
