"""The flags of ``stowage console``."""

from __future__ import annotations

from typing import Annotated

import typer

from stowage.cli.ask import decision_source, flags
from stowage.cli.ask.decision_source import DecisionSource
from stowage.cli.ask.flags import ClusterFlags
from stowage.cli.lazy_commands import single_command_app


def console_command(
    port: Annotated[
        int,
        typer.Option(min=0, max=65_535, help="Port on 127.0.0.1; 0 lets the system choose one."),
    ] = 0,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the default browser.")
    ] = False,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = None,
    from_: flags.From = None,
    config: flags.ConfigFile = None,
    configmap: flags.ConfigMap = None,
    feature_gates: flags.FeatureGates = None,
    server: decision_source.Server = None,
    token_file: decision_source.TokenFile = None,
    certificate_authority: decision_source.CertificateAuthority = None,
    insecure: decision_source.Insecure = False,
    decision_log: decision_source.DecisionLog = None,
) -> None:
    """Show a cluster in a browser: its nodes, pending pods and decisions, and what would be if.

    The page is served on this machine until Ctrl-C, to whoever has the printed address. The cluster
    is only read. Decisions are those that the watches show, or those of a scheduler that --server
    or --decision-log names.
    """
    # Imported late: --help does not need numpy and the plugins.
    from stowage.cli.console.session import serve  # noqa: PLC0415

    asked = ClusterFlags(kubeconfig, context, from_, config, configmap, None, None, feature_gates)
    decisions = DecisionSource(server, token_file, certificate_authority, insecure, decision_log)
    raise typer.Exit(serve(asked, decisions, port, opens=open_))


app = single_command_app(console_command)
