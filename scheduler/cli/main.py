"""The ``stowage`` command."""

from __future__ import annotations

import typer

from scheduler.cli.on_demand import CommandSource, OnDemandGroup
from scheduler.cli.standard_files import open_standard_files

_SCHEDULE = "Schedule"
_TRY = "Try and measure"

_EPILOG = """[b]Examples[/b]

See it work, without a cluster:  [cyan]stowage demo[/cyan]

Run against a cluster:  [cyan]stowage run --kubeconfig ~/.kube/config[/cyan]

Check a configuration before it is used:  [cyan]stowage config check config/bin-packing.yaml[/cyan]

A cluster to try things on:  [cyan]stowage cluster --write-kubeconfig /tmp/kc[/cyan]

A copy of a real one:  [cyan]stowage dump all.json && stowage cluster --from all.json[/cyan]
"""


class _Commands(OnDemandGroup):
    sources = {  # noqa: RUF012 - declared as a ClassVar where it is read
        "run": CommandSource("scheduler.cli.run", _SCHEDULE),
        "config": CommandSource("scheduler.cli.config", _SCHEDULE),
        "demo": CommandSource("scheduler.cli.demo.command", _TRY),
        "cluster": CommandSource("scheduler.cli.cluster", _TRY),
        "dump": CommandSource("scheduler.cli.dump", _TRY),
        "bench": CommandSource("scheduler.cli.bench.command", _TRY),
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
    open_standard_files()
