"""Checks of the files for results before a run that takes long."""

from __future__ import annotations

from pathlib import Path

import typer

_PLOTS = (".svg", ".png", ".pdf")


def check_file(file: Path | None) -> Path | None:
    """The file, if it can be written at the end.

    Raises:
        typer.BadParameter: Its folder does not exist.
    """
    if file is not None and not file.parent.is_dir():
        raise typer.BadParameter(f"{file} (expected a file in a folder that exists)")
    return file


def check_plot(file: Path | None) -> Path | None:
    """The file, if a plot can be written to it at the end.

    Raises:
        typer.BadParameter: Its folder does not exist, or its name says no format of plots.
    """
    if file is not None and file.suffix not in _PLOTS:
        raise typer.BadParameter(f"{file} (expected a name that ends in {', '.join(_PLOTS)})")
    return check_file(file)
