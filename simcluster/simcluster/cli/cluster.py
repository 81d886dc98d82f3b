"""``stowage cluster``: runs the simulated cluster."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
import typer
from rich.console import Console
from rich.markup import escape

from simcluster.cli.cluster_flags import (
    AccessFlags,
    AddressFlags,
    LimitFlags,
    NodeFlags,
    PartFlags,
    Shape,
    StateFlags,
)
from simcluster.cli.kubectl import kubectl_command
from simcluster.kubelet.nodes import bench_node
from stowage.cli.flag_groups import takes_flag_groups
from stowage.cli.lazy_commands import single_command_app
from stowage.cli.terminal import terminal

if TYPE_CHECKING:
    from simcluster import ClusterOptions, SimulatedCluster


@takes_flag_groups
def cluster(
    *,
    nodes: NodeFlags,
    state: StateFlags,
    address: AddressFlags,
    access: AccessFlags,
    parts: PartFlags,
    limits: LimitFlags,
) -> None:
    """Run a simulated Kubernetes cluster, whose nodes exist only in memory, until Ctrl-C.

    Its API server answers kubectl and every other client over HTTP. --save keeps its objects.
    A node is stopped with kubectl annotate node NAME stowage/node-state=stopped, and started
    again with stowage/node-state-; docs/reference/simulated-cluster.md has all states.
    """
    # The HTTP server takes long to import; --help does not need it.
    import uvloop  # noqa: PLC0415

    from simcluster import run_cluster  # noqa: PLC0415
    from simcluster.auth.kubeconfig import read_kubeconfig  # noqa: PLC0415

    _set_up_logging()
    console = terminal(stderr=True)
    kubeconfig = address.write_kubeconfig
    try:
        state.check()
        if kubeconfig is not None:
            read_kubeconfig(kubeconfig)
        made = _nodes(nodes, is_empty=not state.files)
        options = _options(state, address, access, parts, limits)
        announce = _announcement(console, kubeconfig)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run_cluster(made, options, kubeconfig, announce, state.save))
    except KeyboardInterrupt:
        console.print("stopped")
    except (OSError, ValueError) as error:
        why = " ".join(str(error).split())
        text = f"[red]cannot start the cluster:[/red] {escape(why)}"
        console.print(text, soft_wrap=True)
        raise typer.Exit(1) from error


def _set_up_logging() -> None:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty() and not os.environ.get("NO_COLOR"),
                exception_formatter=structlog.dev.plain_traceback,
            ),
        ],
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )


def _options(
    state: StateFlags,
    address: AddressFlags,
    access: AccessFlags,
    parts: PartFlags,
    limits: LimitFlags,
) -> ClusterOptions:
    """The options of the cluster that the flags ask for."""
    from simcluster import ClusterOptions, KubeletOptions, parse_token_file  # noqa: PLC0415 - as above
    from simcluster.features import read_features  # noqa: PLC0415

    users_file = access.token_auth_file
    return ClusterOptions(
        listen=address.listen,
        token=access.token,
        users={} if users_file is None else parse_token_file(users_file),
        rbac=access.rbac,
        cert_file=access.tls_cert_file,
        key_file=access.tls_private_key_file,
        with_kubelet=parts.kubelet,
        with_controllers=parts.controllers,
        history_size=limits.watch_history,
        max_connections=limits.max_connections,
        max_in_flight=limits.max_requests,
        sends_bookmarks=limits.bookmarks,
        faults_over_http=limits.faults,
        kubelet=KubeletOptions(parts.pod_start_seconds, parts.job_run_seconds),
        from_files=tuple(state.files or ()),
        refuse_unknown_kinds=state.strict_from,
        node_grace_s=parts.node_grace_seconds,
        service_accounts=parts.service_accounts,
        gates=read_features(parts.feature_gates or [], parts.runtime_config or []),
    )


def _nodes(flags: NodeFlags, *, is_empty: bool) -> list[dict[str, object]]:
    """The nodes of the file, and the requested number of nodes of the shape."""
    from simcluster import read_node_file, sample_nodes  # noqa: PLC0415 - as above

    described = [] if flags.node_file is None else read_node_file(flags.node_file)
    count = flags.nodes
    if count is None:
        count = 100 if is_empty and flags.node_file is None else 0
    if flags.shape is Shape.DEMO:
        return [*described, *sample_nodes(count)]
    return [*described, *map(bench_node, range(count))]


def _announcement(console: Console, kubeconfig: Path | None) -> Callable[[SimulatedCluster], None]:
    def announce(cluster: SimulatedCluster) -> None:
        if cluster.options.from_files:
            for line in cluster.load_report.lines():
                console.print(escape(line), soft_wrap=True)
        # Rich takes the brackets of an IPv6 address for markup.
        console.print(f"{cluster.num_nodes} nodes at {escape(cluster.url)}, until Ctrl-C")
        if kubeconfig is not None:
            console.print(
                f"try: {kubectl_command()} --kubeconfig {kubeconfig} get nodes", soft_wrap=True
            )

    return announce


app = single_command_app(cluster)
