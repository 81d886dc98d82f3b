"""The ``stowage`` command."""

from __future__ import annotations

import typer

from stowage.cli.lazy_commands import CommandSource, LazyGroup, installed_commands
from stowage.cli.standard_streams import open_standard_streams

_SCHEDULE = "Schedule"
_TRY = "Try and measure"

_EPILOG = """[b]Examples[/b]

See it work, without a cluster:  [cyan]stowage demo[/cyan]

Run against a cluster:  [cyan]stowage run --kubeconfig ~/.kube/config[/cyan]

Check a configuration before it is used:  [cyan]stowage config check config/bin-packing.yaml[/cyan]

A cluster to try things on:  [cyan]stowage cluster --write-kubeconfig /tmp/kc[/cyan]

A copy of a real one:  [cyan]stowage dump all.json && stowage cluster --from all.json[/cyan]
"""


class _Commands(LazyGroup):
    sources = {  # noqa: RUF012 - declared as a ClassVar where it is read
        "run": CommandSource("stowage.cli.run", _SCHEDULE),
        "config": CommandSource("stowage.cli.config", _SCHEDULE),
        **installed_commands(_TRY),
    }


app = typer.Typer(
    name="stowage",
    cls=_Commands,
    epilog=_EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def stowage() -> None:
    """Stowage, a Kubernetes scheduler: kube-scheduler's decisions, made in Python."""
    open_standard_streams()
