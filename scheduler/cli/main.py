"""The ``stowage`` command."""

from __future__ import annotations

import typer

from scheduler.cli import bench, config
from scheduler.cli.cluster import cluster
from scheduler.cli.demo.command import demo
from scheduler.cli.dump import dump
from scheduler.cli.go_flags import GoFlagsCommand
from scheduler.cli.run import run

_SCHEDULE = "Schedule"
_TRY = "Try and measure"

_EPILOG = """[b]Examples[/b]

See it work, without a cluster:  [cyan]stowage demo[/cyan]

Run against a cluster:  [cyan]stowage run --kubeconfig ~/.kube/config[/cyan]

Check a configuration before it is used:  [cyan]stowage config check config/bin-packing.yaml[/cyan]

A cluster to try things on:  [cyan]stowage cluster --write-kubeconfig /tmp/kc[/cyan]

A copy of a real one:  [cyan]stowage dump all.json && stowage cluster --from all.json[/cyan]
"""

app = typer.Typer(
    name="stowage",
    help="Stowage, a Kubernetes scheduler: kube-scheduler's decisions, made in Python.",
    epilog=_EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=GoFlagsCommand, rich_help_panel=_SCHEDULE)(run)
app.add_typer(config.app, name="config", rich_help_panel=_SCHEDULE)
app.command(rich_help_panel=_TRY)(demo)
app.command(rich_help_panel=_TRY)(cluster)
app.command(rich_help_panel=_TRY)(dump)
app.add_typer(bench.app, name="bench", rich_help_panel=_TRY)
