"""``stowage cluster``: runs the simulated cluster."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import structlog
import typer
from rich.console import Console
from rich.markup import escape

from simcluster.cli.kubectl import kubectl_command
from simcluster.kubelet.nodes import bench_node
from stowage.cli.lazy_commands import single_command_app

if TYPE_CHECKING:
    from simcluster import SimulatedCluster

_TLS_PANEL = "TLS and access"
_LIMITS_PANEL = "Limits"
_PARTS_PANEL = "Kubelets and controllers"
_STATE_PANEL = "State"


class Shape(StrEnum):
    """The shape of the nodes."""

    DEMO = "demo"
    BENCH = "bench"


NumNodes: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=0,
        show_default="100, or 0 with --from or --node-file",
        help="Number of nodes at the start.",
    ),
]
NodeFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        metavar="FILE",
        help="Nodes as a YAML list of groups: count, name, zones, labels, taints, capacity, "
        "images, devices, how long pods take to start, how many fail, when the node stops; see "
        "docs/reference/simulated-cluster.md.",
    ),
]
FromFiles: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--from",
        exists=True,
        dir_okay=False,
        metavar="FILE",
        help="Start from the output of kubectl get ... -A -o json (or yaml), or from a saved "
        "cluster; may be given several times.",
        rich_help_panel=_STATE_PANEL,
    ),
]
StrictFrom: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--strict-from",
        help="Refuse kinds that are not served here instead of leaving them out.",
        rich_help_panel=_STATE_PANEL,
    ),
]
Save: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--save",
        dir_okay=False,
        metavar="FILE",
        help="Write all objects to this file at the end and on SIGUSR1; --from reads it. A file "
        "that exists is refused, unless --from names it, too.",
        rich_help_panel=_STATE_PANEL,
    ),
]
Force: TypeAlias = Annotated[
    bool,
    typer.Option("--force", help="Let --save overwrite a file.", rich_help_panel=_STATE_PANEL),
]
NodeShape: TypeAlias = Annotated[
    Shape,
    typer.Option(
        help="demo: 3 zones, 2 sizes, some nodes tainted, some with SSDs or GPUs. "
        "bench: equal nodes of 4 CPUs, 32Gi and 110 pods in 10 zones."
    ),
]
Listen: TypeAlias = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Address to listen on; port 0 takes a free port.")
]
KubeconfigOut: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write a kubeconfig to this file once the cluster answers. In a file that exists, "
        "only the cluster, user and context named stowage are set, and the current context.",
    ),
]
Token: TypeAlias = Annotated[
    str,
    typer.Option(
        help="Bearer token that requests must carry; empty lets everyone in.",
        rich_help_panel=_TLS_PANEL,
    ),
]
TokenAuthFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        metavar="FILE",
        help='More users, a line each: token,user,uid,"group1,group2", as kube-apiserver reads it.',
        rich_help_panel=_TLS_PANEL,
    ),
]
Rbac: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--rbac",
        help="Authorize those users by Roles and ClusterRoles; needs --token, whose bearer may do "
        "everything.",
        rich_help_panel=_TLS_PANEL,
    ),
]
CertFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="PEM certificate; given with its key, HTTPS is served.",
        rich_help_panel=_TLS_PANEL,
    ),
]
KeyFile: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="PEM key.", rich_help_panel=_TLS_PANEL)
]
Kubelet: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--kubelet/--no-kubelet", help="Run pods that are bound.", rich_help_panel=_PARTS_PANEL
    ),
]
Controllers: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--controllers/--no-controllers",
        help="Create the pods of Deployments, Jobs and the like, bind volumes, taint nodes.",
        rich_help_panel=_PARTS_PANEL,
    ),
]
ServiceAccounts: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--service-accounts",
        help="Give every namespace its ServiceAccount default and ConfigMap kube-root-ca.crt.",
        rich_help_panel=_PARTS_PANEL,
    ),
]
PodStart: TypeAlias = Annotated[
    float, typer.Option(min=0, help="Seconds a pod takes to start.", rich_help_panel=_PARTS_PANEL)
]
JobRun: TypeAlias = Annotated[
    float, typer.Option(min=0, help="Seconds a Job's pod runs.", rich_help_panel=_PARTS_PANEL)
]
NodeGrace: TypeAlias = Annotated[
    float,
    typer.Option(
        min=0,
        help="Seconds that a node may be silent before it is Unknown.",
        rich_help_panel=_PARTS_PANEL,
    ),
]
WatchHistory: TypeAlias = Annotated[
    int,
    typer.Option(
        min=1,
        help="Changes kept per resource; a watch or page from before them is answered 410.",
        rich_help_panel=_LIMITS_PANEL,
    ),
]
MaxConnections: TypeAlias = Annotated[
    int,
    typer.Option(
        min=1,
        help="Requests on connections beyond these are answered 429.",
        rich_help_panel=_LIMITS_PANEL,
    ),
]
MaxRequests: TypeAlias = Annotated[
    int,
    typer.Option(
        "--max-requests-inflight",
        min=1,
        help="Requests beyond these, watches aside, are answered 429.",
        rich_help_panel=_LIMITS_PANEL,
    ),
]
Bookmarks: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--bookmarks/--no-bookmarks",
        help="Send bookmarks on watches; a real API server may send none for 10 minutes.",
        rich_help_panel=_LIMITS_PANEL,
    ),
]
FeatureGates: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-gates",
        metavar="NAME=BOOL,...",
        help="Feature gates, in kube-apiserver's syntax. GenericWorkload serves Workloads and "
        "PodGroups; TopologyAwareWorkloadScheduling, WorkloadAwarePreemption and "
        "DRAWorkloadResourceClaims add fields. No other gate has an effect.",
        rich_help_panel=_PARTS_PANEL,
    ),
]
RuntimeConfig: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--runtime-config",
        metavar="VERSION=BOOL,...",
        help="Versions to serve, in kube-apiserver's syntax; GenericWorkload needs "
        "scheduling.k8s.io/v1alpha2=true.",
        rich_help_panel=_PARTS_PANEL,
    ),
]
FaultsOverHttp: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--faults",
        help="Let POST /stowage/faults make requests fail: JSON with method, path, rate, status "
        "and more (see simcluster/simcluster/faults/faults.py).",
        rich_help_panel=_LIMITS_PANEL,
    ),
]


def cluster(
    nodes: NumNodes = None,
    shape: NodeShape = Shape.DEMO,
    node_file: NodeFile = None,
    from_: FromFiles = None,
    strict_from: StrictFrom = False,
    save: Save = None,
    force: Force = False,
    listen: Listen = "127.0.0.1:8001",
    write_kubeconfig: KubeconfigOut = None,
    token: Token = "",
    token_auth_file: TokenAuthFile = None,
    rbac: Rbac = False,
    tls_cert_file: CertFile = None,
    tls_private_key_file: KeyFile = None,
    kubelet: Kubelet = True,
    controllers: Controllers = True,
    watch_history: WatchHistory = 10_000,
    max_connections: MaxConnections = 4096,
    max_requests: MaxRequests = 600,
    bookmarks: Bookmarks = True,
    faults: FaultsOverHttp = False,
    service_accounts: ServiceAccounts = False,
    pod_start_seconds: PodStart = 0.0,
    job_run_seconds: JobRun = 2.0,
    node_grace_seconds: NodeGrace = 50.0,
    feature_gates: FeatureGates = None,
    runtime_config: RuntimeConfig = None,
) -> None:
    """Run a simulated Kubernetes cluster, whose nodes exist only in memory, until Ctrl-C.

    Its API server answers kubectl and every other client over HTTP. --save keeps its objects.
    A node is stopped with kubectl annotate node NAME stowage/node-state=stopped, and started
    again with stowage/node-state-; docs/reference/simulated-cluster.md has all states.
    """
    # The HTTP server takes long to import; --help does not need it.
    import uvloop  # noqa: PLC0415

    from simcluster import ClusterOptions, KubeletOptions, parse_token_file, run_cluster  # noqa: PLC0415
    from simcluster.auth.kubeconfig import read_kubeconfig  # noqa: PLC0415
    from simcluster.features import read_features  # noqa: PLC0415

    _set_up_logging()
    console = Console(stderr=True, highlight=False)
    try:
        _check_save(save, may_overwrite=force or save in (from_ or ()))
        if write_kubeconfig is not None:
            read_kubeconfig(write_kubeconfig)
        made = _nodes(nodes, shape, node_file, is_empty=not from_)
        options = ClusterOptions(
            listen=listen,
            token=token,
            users={} if token_auth_file is None else parse_token_file(token_auth_file),
            rbac=rbac,
            cert_file=tls_cert_file,
            key_file=tls_private_key_file,
            with_kubelet=kubelet,
            with_controllers=controllers,
            history_size=watch_history,
            max_connections=max_connections,
            max_in_flight=max_requests,
            sends_bookmarks=bookmarks,
            faults_over_http=faults,
            kubelet=KubeletOptions(start_s=pod_start_seconds, job_run_s=job_run_seconds),
            from_files=tuple(from_ or ()),
            refuse_unknown_kinds=strict_from,
            node_grace_s=node_grace_seconds,
            service_accounts=service_accounts,
            gates=read_features(feature_gates or [], runtime_config or []),
        )
        announce = _announcement(console, write_kubeconfig)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run_cluster(made, options, write_kubeconfig, announce, save))
    except KeyboardInterrupt:
        console.print("stopped")
    except (OSError, ValueError) as error:
        console.print(f"[red]cannot start the cluster:[/red] {escape(str(error))}")
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


def _check_save(save: Path | None, *, may_overwrite: bool) -> None:
    """Refuse a file that cannot be written at the end, or would be overwritten."""
    if save is None:
        return
    if not save.absolute().parent.is_dir():
        raise ValueError(f"--save: {save.parent} (expected a folder)")
    if save.exists() and not may_overwrite:
        raise ValueError(f"--save: {save} exists (expected a new file, or --force)")


def _nodes(
    count: int | None, shape: Shape, node_file: Path | None, *, is_empty: bool
) -> list[dict[str, object]]:
    """The nodes of the file, and the requested number of nodes of the shape."""
    from simcluster import read_node_file, sample_nodes  # noqa: PLC0415 - as above

    described = [] if node_file is None else read_node_file(node_file)
    if count is None:
        count = 100 if is_empty and node_file is None else 0
    made = sample_nodes(count) if shape is Shape.DEMO else _bench_nodes(count)
    return [*described, *made]


def _bench_nodes(count: int) -> list[dict[str, object]]:
    return [bench_node(index) for index in range(count)]


def _announcement(console: Console, kubeconfig: Path | None) -> Callable[[SimulatedCluster], None]:
    def announce(cluster: SimulatedCluster) -> None:
        if cluster.options.from_files:
            for line in cluster.load_report.lines():
                console.print(escape(line), soft_wrap=True)
        console.print(f"{cluster.num_nodes} nodes at {cluster.url}, until Ctrl-C")
        if kubeconfig is not None:
            console.print(
                f"try: {kubectl_command()} --kubeconfig {kubeconfig} get nodes", soft_wrap=True
            )

    return announce


app = single_command_app(cluster)
