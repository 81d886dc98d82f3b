"""Flags of the commands that search, and the present configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from stowage.cli.config_file import parse_configuration, parse_document, read_text

SEARCH = "Search"
"""The panel of the flags in the help."""

Trials: TypeAlias = Annotated[
    int, typer.Option(min=1, help="Configurations to try.", rich_help_panel=SEARCH)
]
TrialSeeds: TypeAlias = Annotated[
    str, typer.Option(metavar="SEEDS", help="Seeds of each trial.", rich_help_panel=SEARCH)
]
MaxWeight: TypeAlias = Annotated[
    int,
    typer.Option(
        min=1, max=100, help="Largest weight; 0 disables a plugin.", rich_help_panel=SEARCH
    ),
]
Storage: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        dir_okay=False,
        metavar="FILE",
        help="Keep the trials in this file; an interrupted search goes on from it.",
        rich_help_panel=SEARCH,
    ),
]
Write: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        dir_okay=False,
        metavar="FILE",
        help="Where the configuration is written. Default: standard output.",
    ),
]


def written_configuration(config: Path) -> dict[str, Any]:
    """The present configuration as it is written.

    Raises:
        InvalidConfiguration: It cannot be read, or is invalid.
    """
    text = read_text(config, "--config")
    parse_configuration(text, "--config", str(config))
    document: dict[str, Any] = parse_document(text, "--config", str(config)).builtins
    return document
