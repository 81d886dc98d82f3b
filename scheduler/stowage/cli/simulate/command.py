"""``stowage simulate FILE...`` and its flags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stowage.cli.lazy_commands import single_command_app


def simulate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="The workload.")],
) -> None:
    """Let policies decide about the pods of a workload in virtual time, and compare them."""
    print(files)


app = single_command_app(simulate)
