"""``stowage compact``: names the nodes that could be removed."""

from __future__ import annotations

from stowage.cli.ask import flags
from stowage.cli.ask.flags import ClusterFlags, Output, OutputFormat
from stowage.cli.lazy_commands import single_command_app


def compact_command(
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
    """Name the nodes that could be removed one after the other, the least used first.

    Every pod must find another place, as the scheduler decides, and disruption budgets hold. A pod
    without a controller keeps its node. The cluster is only read.
    """
    # Imported late: --help does not need numpy and the plugins.
    from stowage.cli.ask.answers import answer_compact  # noqa: PLC0415

    asked = ClusterFlags(kubeconfig, context, from_, config, configmap, at, until, feature_gates)
    answer_compact(asked, output)


app = single_command_app(compact_command)
