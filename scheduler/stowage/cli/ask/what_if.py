"""``stowage what-if``: shows what would happen to a cluster, without touching it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stowage.cli.ask.flags import ClusterFlags, Output, OutputFormat, split_lists
from stowage.cli.ask.object_names import node_name, node_names
from stowage.cli.flag_groups import FlagGroup, Panel, takes_flag_groups
from stowage.cli.imports import fast_imports
from stowage.cli.lazy_commands import single_command_app

_CHANGES = Panel("The changes")
MAX_ADDED_NODES = 100_000
"""So many take a second and 120 MB; a thousand times as many would fill the memory."""


class ChangeFlags(FlagGroup, frozen=True):
    """The changes, in the order in which they happen; new objects come last."""

    manifests: Annotated[
        list[Path] | None,
        _CHANGES.option(
            "--filename",
            "-f",
            metavar="FILE",
            help="Manifests to create, workloads included; - reads standard input.",
        ),
    ] = None
    add_nodes: Annotated[
        int, _CHANGES.option(min=0, max=MAX_ADDED_NODES, help="Add this many nodes.")
    ] = 0
    like: Annotated[str, _CHANGES.option(metavar="NODE", help="The model of added nodes.")] = ""
    cordon: Annotated[
        list[str] | None, _CHANGES.option(metavar="NODE,...", help="Cordon these nodes.")
    ] = None
    drain: Annotated[
        list[str] | None,
        _CHANGES.option(
            metavar="NODE,...",
            help="Cordon these nodes and evict their pods, as disruption budgets allow.",
        ),
    ] = None
    remove_nodes: Annotated[
        list[str] | None,
        _CHANGES.option(metavar="NODE,...", help="Drain and remove these nodes."),
    ] = None
    weights: Annotated[
        list[str] | None,
        _CHANGES.option(
            metavar="PLUGIN=WEIGHT,...", help="Other weights of score plugins, in all profiles."
        ),
    ] = None


@takes_flag_groups
def what_if_command(
    *, changes: ChangeFlags, output: Output = OutputFormat.TABLE, cluster: ClusterFlags
) -> None:
    """Show what would happen: where pods would go, whom they would preempt, what stays pending.

    The scheduler decides about a copy of the cluster in memory; the cluster itself is only read.
    Changes may be combined; they happen in the order of this list, new objects last.
    """
    if bool(changes.add_nodes) != bool(changes.like):
        raise typer.BadParameter("--add-nodes and --like belong together")
    # Imported late: --help does not need numpy and the plugins.
    with fast_imports():
        from stowage.cli.ask.answers import Changes, answer_what_if  # noqa: PLC0415

    wanted = Changes(
        changes.manifests or (),
        [(changes.add_nodes, node_name(changes.like))] if changes.add_nodes else (),
        node_names(split_lists(changes.cordon)),
        node_names(split_lists(changes.drain)),
        node_names(split_lists(changes.remove_nodes)),
        split_lists(changes.weights),
    )
    answer_what_if(cluster, wanted, output)


app = single_command_app(what_if_command)
