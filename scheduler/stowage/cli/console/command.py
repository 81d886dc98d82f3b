"""The flags of ``stowage console``."""

from __future__ import annotations

from typing import Annotated

import typer

from stowage.cli.ask.decision_source import DecisionSource
from stowage.cli.ask.flags import ClusterFlags
from stowage.cli.flag_groups import Without, takes_flag_groups
from stowage.cli.lazy_commands import single_command_app


@takes_flag_groups
def console_command(
    port: Annotated[
        int,
        typer.Option(min=0, max=65_535, help="Port on 127.0.0.1; 0 lets the system choose one."),
    ] = 0,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the default browser.")
    ] = False,
    *,
    cluster: Annotated[ClusterFlags, Without("at", "until")],
    decisions: DecisionSource,
) -> None:
    """Show a cluster in a browser: its nodes, pending pods, decisions and what-ifs.

    The page is served on this machine until Ctrl-C, to whoever has the printed address. The cluster
    is only read. Decisions are those that the watches show, or those of a scheduler that --server
    or --decision-log names.
    """
    # Imported late: --help does not need numpy and the plugins.
    from stowage.cli.console.session import serve  # noqa: PLC0415

    raise typer.Exit(serve(cluster, decisions, port, opens=open_))


app = single_command_app(console_command)
