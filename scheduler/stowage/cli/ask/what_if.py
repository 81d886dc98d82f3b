"""``stowage what-if``: shows what would happen to a cluster, without touching it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stowage.cli.ask import flags
from stowage.cli.ask.flags import ClusterFlags, Output, OutputFormat, split_lists
from stowage.cli.lazy_commands import single_command_app

_CHANGES = "The changes"


def what_if_command(
    manifests: Annotated[
        list[Path] | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="Manifests to create, workloads included; - reads standard input.",
            rich_help_panel=_CHANGES,
        ),
    ] = None,
    cordon: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE,...", help="Cordon these nodes.", rich_help_panel=_CHANGES),
    ] = None,
    drain: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE,...",
            help="Cordon these nodes and evict their pods, as disruption budgets allow.",
            rich_help_panel=_CHANGES,
        ),
    ] = None,
    add_nodes: Annotated[
        int, typer.Option(min=0, help="Add this many nodes.", rich_help_panel=_CHANGES)
    ] = 0,
    like: Annotated[
        str,
        typer.Option(metavar="NODE", help="The model of added nodes.", rich_help_panel=_CHANGES),
    ] = "",
    remove_nodes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE,...", help="Drain and remove these nodes.", rich_help_panel=_CHANGES
        ),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PLUGIN=WEIGHT,...",
            help="Other weights of score plugins, in all profiles.",
            rich_help_panel=_CHANGES,
        ),
    ] = None,
    output: Output = OutputFormat.TABLE,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = None,
    from_: flags.From = None,
    at: flags.At = None,
    until: flags.Until = None,
    config: flags.ConfigFile = None,
    configmap: flags.ConfigMap = None,
    feature_gates: flags.FeatureGates = None,
) -> None:
    """Show what would happen: where pods would go, whom they would preempt, what stays pending.

    The scheduler decides about a copy of the cluster in memory; the cluster itself is only read.
    Changes may be combined; they happen in the order of this list, new objects last.
    """
    if bool(add_nodes) != bool(like):
        raise typer.BadParameter("--add-nodes and --like belong together")
    # Imported late: --help does not need numpy and the plugins.
    from stowage.cli.ask.answers import Changes, answer_what_if  # noqa: PLC0415

    asked = ClusterFlags(kubeconfig, context, from_, config, configmap, at, until, feature_gates)
    changes = Changes(
        manifests or (),
        [(add_nodes, like)] if add_nodes else (),
        split_lists(cordon),
        split_lists(drain),
        split_lists(remove_nodes),
        split_lists(weights),
    )
    answer_what_if(asked, changes, output)


app = single_command_app(what_if_command)
