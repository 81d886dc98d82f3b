"""``--version``: prints the version and ends the command."""

from __future__ import annotations

import platform
import re
from importlib import metadata

import typer

from stowage.api.config.feature_gates import GO_BOOLEANS

_REPORTED = re.compile(r"v\d+\.\d+\.\d+.*")


def version_text(raw: bool = False) -> str:
    """The version; `raw` adds those of Python and the platform."""
    text = f"stowage {metadata.version('stowage')}"
    system = f"{platform.system().lower()}/{platform.machine()}"
    return f"{text}, Python {platform.python_version()}, {system}" if raw else text


def print_version(wanted: bool) -> None:
    """Print the version and exit, for the flag of ``stowage`` itself."""
    if wanted:
        typer.echo(version_text())
        raise typer.Exit


def print_version_like_kube_scheduler(value: str | None) -> str | None:
    """Print the version and exit for ``--version`` and ``--version=raw``.

    ``--version=vX.Y.Z`` sets the reported version in kube-scheduler; it is returned.
    """
    if value is None or _REPORTED.fullmatch(value):
        return value
    if value != "raw" and value not in GO_BOOLEANS:
        raise typer.BadParameter(f"{value!r} is not true, false, raw or a version vX.Y.Z")
    if value == "raw" or GO_BOOLEANS[value]:
        typer.echo(version_text(raw=value == "raw"))
        raise typer.Exit
    return None
