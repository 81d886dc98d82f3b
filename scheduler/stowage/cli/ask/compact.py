"""``stowage compact``: names the nodes that could be removed."""

from __future__ import annotations

from stowage.cli.ask.flags import ClusterFlags, Output, OutputFormat
from stowage.cli.flag_groups import takes_flag_groups
from stowage.cli.imports import fast_imports
from stowage.cli.lazy_commands import single_command_app


@takes_flag_groups
def compact_command(
    output: Output = OutputFormat.TABLE,
    *,
    cluster: ClusterFlags,
) -> None:
    """Name the nodes that could be removed one after the other, the least used first.

    Every pod must find another place, as the scheduler decides, and disruption budgets hold. A pod
    without a controller keeps its node. The cluster is only read.
    """
    # Imported late: --help does not need numpy and the plugins.
    with fast_imports():
        from stowage.cli.ask.answers import answer_compact  # noqa: PLC0415

    answer_compact(cluster, output)


app = single_command_app(compact_command)
