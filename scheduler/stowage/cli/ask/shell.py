"""``stowage shell``: reads a cluster once and answers question after question about it."""

from __future__ import annotations

from stowage.cli.ask import flags
from stowage.cli.ask.flags import ClusterFlags
from stowage.cli.lazy_commands import single_command_app


def shell_command(
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = None,
    from_: flags.From = None,
    at: flags.At = None,
    until: flags.Until = None,
    config: flags.ConfigFile = None,
    configmap: flags.ConfigMap = None,
    feature_gates: flags.FeatureGates = None,
) -> None:
    """Read a cluster once, then answer a question a line: explain, what-if, capacity, compact.

    The lines are those of the commands, without the flags that name the cluster. "reload" reads
    the cluster again, "exit" or the end of input ends the shell.
    """
    # Imported late: --help does not need numpy and the plugins.
    from stowage.cli.ask.conversation import converse  # noqa: PLC0415

    asked = ClusterFlags(kubeconfig, context, from_, config, configmap, at, until, feature_gates)
    converse(asked)


app = single_command_app(shell_command)
