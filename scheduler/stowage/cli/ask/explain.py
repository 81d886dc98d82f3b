"""``stowage explain``: explains a pod's placement or why it is pending, a pod group, or a node."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import typer

from stowage.cli.ask.decision_source import DecisionSource
from stowage.cli.ask.flags import ClusterFlags, Output, OutputFormat
from stowage.cli.ask.object_names import group_key, kind_of, node_name, pod_key
from stowage.cli.flag_groups import takes_flag_groups
from stowage.cli.imports import fast_imports
from stowage.cli.plain_help import PlainCommand, PlainGroup


class _ByType(PlainGroup):
    """A group whose commands also have kubectl's names of types: ``po NAME``, ``pod/NAME``."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first argument names, alone or before a slash."""
        word, slash, _ = args[0].partition("/")
        kind = kind_of(word)
        if kind is not None:
            args = [kind, *(args if slash else args[1:])]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Explain a pod's placement or why it is pending, a pod group, or what a node rejects.",
    rich_markup_mode=None,
    cls=_ByType,
)

Namespace: TypeAlias = Annotated[
    str, typer.Option("--namespace", "-n", help="Namespace of a name without one.")
]


@app.command(cls=PlainCommand)
@takes_flag_groups
def pod(
    name: Annotated[str, typer.Argument(metavar="[NAMESPACE/]NAME")],
    namespace: Namespace = "default",
    output: Output = OutputFormat.TABLE,
    *,
    cluster: ClusterFlags,
    recorded: DecisionSource,
) -> None:
    """Explain a pod: the verdict of every plugin about every node, and every score.

    A pending pod: the nodes by reason, the smallest changes that would help, preemption, and the
    events that it waits for. A placed pod: the nodes with their scores, and by what the runner-up
    lost. A member of a pod group: in the try of its group. The cluster is only read.

    pod/NAME names a pod as well, as for kubectl, and so does stowage explain pod/NAME.

    With --server or --decision-log: the last decision about the pod as it was made, with its ten
    best nodes; the cluster is not read.
    """
    # Imported late: --help does not need numpy and the plugins.
    with fast_imports():
        from stowage.cli.ask.answers import answer_about_pod, answer_about_recorded  # noqa: PLC0415

    key = pod_key(name, namespace)
    if recorded.is_given:
        answer_about_recorded(recorded, key, output)
        return
    answer_about_pod(cluster, key, output)


@app.command(cls=PlainCommand)
@takes_flag_groups
def node(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    output: Output = OutputFormat.TABLE,
    *,
    cluster: ClusterFlags,
) -> None:
    """Explain a node: its pods, what is free, and which pending pods it rejects and why."""
    with fast_imports():
        from stowage.cli.ask.answers import answer_about_node  # noqa: PLC0415 - as above

    answer_about_node(cluster, node_name(name), output)


@app.command(cls=PlainCommand)
@takes_flag_groups
def group(
    name: Annotated[str, typer.Argument(metavar="[NAMESPACE/]NAME")],
    namespace: Namespace = "default",
    output: Output = OutputFormat.TABLE,
    *,
    cluster: ClusterFlags,
) -> None:
    """Explain a pod group: how many members fit, what the next one lacks, in each domain.

    The pending members are tried as the scheduler does it: one after the other, each beside those
    before it. The cluster is only read.
    """
    with fast_imports():
        from stowage.cli.ask.answers import answer_about_group  # noqa: PLC0415 - as above

    answer_about_group(cluster, group_key(name, namespace), output)
