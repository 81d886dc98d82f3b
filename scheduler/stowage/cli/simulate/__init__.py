"""``stowage simulate``: policies on a workload in virtual time.

``stowage simulate FILE...`` is the module `command`; a name in `_Commands.sources` instead of the
first argument is another command.
"""

from __future__ import annotations

import typer

from stowage.cli.lazy_commands import FILE, CommandSource, FileGroup

_PANEL = "Simulate"


class _Commands(FileGroup):
    sources = {  # noqa: RUF012 - declared as a ClassVar where it is read
        FILE: CommandSource("stowage.cli.simulate.command", _PANEL),
        "openb": CommandSource("stowage.cli.simulate.openb", _PANEL),
    }


app = typer.Typer(
    name="simulate",
    cls=_Commands,
    add_completion=False,
    help="Let policies decide about the pods of a workload in virtual time, and compare them.",
    rich_markup_mode=None,
)


@app.callback()
def simulate() -> None:
    """Let policies decide about the pods of a workload in virtual time, and compare them."""
