"""``stowage shell``: reads a cluster once and answers question after question about it."""

from __future__ import annotations

from stowage.cli.ask.flags import ClusterFlags
from stowage.cli.flag_groups import takes_flag_groups
from stowage.cli.imports import fast_imports
from stowage.cli.lazy_commands import single_command_app


@takes_flag_groups
def shell_command(
    *,
    cluster: ClusterFlags,
) -> None:
    """Read a cluster once, then answer one question per line: explain, what-if, capacity, compact.

    The lines are those of the commands, without the flags that name the cluster. "reload" reads
    the cluster again; if that fails, the one that was read before is kept. "help" lists the
    questions. "exit" or the end of input ends the shell.
    """
    # Imported late: --help does not need numpy and the plugins.
    with fast_imports():
        from stowage.cli.ask.conversation import converse  # noqa: PLC0415

    converse(cluster)


app = single_command_app(shell_command)
