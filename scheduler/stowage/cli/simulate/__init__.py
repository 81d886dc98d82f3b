"""``stowage simulate``: policies on a workload in virtual time.

``stowage simulate FILE...`` is the module `command`; a name in `_Commands.sources` instead of the
first argument is another command.
"""

from __future__ import annotations

from typing import Any

import typer

from stowage.cli.lazy_commands import CommandSource, LazyGroup

_FILE = "FILE"
_PANEL = "Simulate"


class _Commands(LazyGroup):
    sources = {  # noqa: RUF012 - declared as a ClassVar where it is read
        _FILE: CommandSource("stowage.cli.simulate.command", _PANEL),
    }

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name; any other name is the first file."""
        return super().get_command(ctx, cmd_name if cmd_name in self.sources else _FILE)

    def make_context(
        self, info_name: Any, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Let the command of files take the arguments, unless the first one names another."""
        if args and args[0] != _FILE and args[0] in self.sources:
            return super().make_context(info_name, args, parent, **extra)
        return super().get_command(None, _FILE).make_context(info_name, args, parent, **extra)


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
