"""``stowage tune``: finds better weights and arguments of score plugins on a workload.

``stowage tune FILE...`` is the module `command`, ``stowage tune openb`` the module `openb`;
`search_flags` has the flags of both. `task` has the experiments of a search, on `workload_data` or
`openb_data`; `tuning` searches, `finding` has what was found and the configuration file that says
so, `plots` the report, and `answer` writes both.
"""

from __future__ import annotations

import typer

from stowage.cli.lazy_commands import FILE, CommandSource, FileGroup

_PANEL = "Tune"


class _Commands(FileGroup):
    sources = {  # noqa: RUF012 - declared as a ClassVar where it is read
        FILE: CommandSource("stowage.cli.tune.command", _PANEL),
        "openb": CommandSource("stowage.cli.tune.openb", _PANEL),
    }


app = typer.Typer(
    name="tune",
    cls=_Commands,
    add_completion=False,
    help="Find better weights and arguments of score plugins, by simulation.",
    rich_markup_mode=None,
)


@app.callback()
def tune() -> None:
    """Find better weights and arguments of score plugins, by simulation."""
