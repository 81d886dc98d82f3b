"""The whole cluster in one object: API server, kubelet stand-in and controllers."""

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from scheduler.cluster.access import AccessOptions
from scheduler.cluster.bootstrap_roles import make_bootstrap_roles
from scheduler.cluster.clock import Clock
from scheduler.cluster.controllers import CONTROLLERS, Reconciler, Shared
from scheduler.cluster.faults import Faults
from scheduler.cluster.kubeconfig import write_kubeconfig
from scheduler.cluster.kubelet import Kubelet, KubeletOptions
from scheduler.cluster.registry import Registry
from scheduler.cluster.resources import NAMESPACES, NODES, PRIORITY_CLASSES
from scheduler.cluster.server import ApiServer, ServerOptions
from scheduler.cluster.store import Store
from scheduler.cluster.users import User

Json = dict[str, Any]

NAMESPACE_NAMES = ("default", "kube-system", "kube-public", "kube-node-lease")
_SYSTEM_CLASSES = (
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
)


@dataclass(frozen=True)
class ClusterOptions:
    """What the cluster runs.

    Args:
        listen: ``HOST:PORT``; port 0 takes a free one.
        token: bearer token that requests must carry; empty lets everyone in. kubectl sends tokens
            over TLS only. Whoever carries it may do everything.
        users: further users by their tokens.
        rbac: those users may do what Roles and ClusterRoles allow; needs a ``token``. Without it
            they may do everything.
        cert_file: PEM certificate (with its chain); given together with ``key_file`` it turns TLS
            on. It is also what the written kubeconfig trusts, unless ``ca_file`` is given.
        key_file: PEM key of ``cert_file``.
        ca_file: PEM authority for the written kubeconfig.
        history_size: changes kept per resource; a watch from before them answers 410.
        max_pending_frames: watch events that may wait for a slow client before it is cut off.
        faults_over_http: serve the fault injection of tests under ``/stowage/faults``.
        with_kubelet: run bound pods.
        with_controllers: run Deployments, ReplicaSets, Jobs, budgets and the like, and taint nodes
            until they are ready. Without them a created node carries no such taint.
        kubelet: how long pods take to start, run and stop.
    """

    listen: str = "127.0.0.1:0"
    token: str = ""
    users: Mapping[str, User] = field(default_factory=dict)
    rbac: bool = False
    cert_file: str | Path | None = None
    key_file: str | Path | None = None
    ca_file: str | Path | None = None
    history_size: int = 10_000
    max_pending_frames: int = 10_000
    faults_over_http: bool = False
    with_kubelet: bool = True
    with_controllers: bool = True
    kubelet: KubeletOptions = field(default_factory=KubeletOptions)


class EmbeddedCluster:
    """A Kubernetes cluster in this process; ``async with`` starts and stops it.

    Args:
        nodes: Node objects that exist from the start, such as :func:`sample_nodes`' ones.
        options: what to run and where to listen.
        faults: what goes wrong on purpose.
        clock: the time of all timestamps.
    """

    def __init__(
        self,
        nodes: Sequence[Json] = (),
        options: ClusterOptions | None = None,
        faults: Faults | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.options = options or ClusterOptions()
        self.faults = faults or Faults()
        self.store = Store(self.options.history_size)
        self.registry = Registry(
            self.store, clock or Clock(), taint_new_nodes=self.options.with_controllers
        )
        self.server = ApiServer(self.registry, _server_options(self.options), self.faults)
        self._nodes = nodes
        self._kubelet: Kubelet | None = None
        self._shared: Shared | None = None
        self._controllers: list[Reconciler] = []

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return self.server.url

    def write_kubeconfig(self, path: str | Path) -> Path:
        """Write a kubeconfig for this cluster; returns its path."""
        options = self.options
        ca_file = (options.ca_file or options.cert_file) if options.cert_file else None
        return write_kubeconfig(path, self.url, options.token, ca_file)

    async def start(self) -> None:
        """Make the first objects, listen, and start what runs behind.

        Raises:
            OSError: the address is taken or not ours.
        """
        self._make_first_objects()
        await self.server.start()
        if self.options.with_kubelet:
            self._kubelet = Kubelet(self.registry, self.options.kubelet)
            self._kubelet.start()
        if self.options.with_controllers:
            self._shared = Shared(self.registry)
            self._controllers = [controller(self._shared) for controller in CONTROLLERS]
            for controller in self._controllers:
                controller.start()

    async def stop(self) -> None:
        """Stop listening, end every watch, and stop what runs behind."""
        await self.server.stop()
        for controller in self._controllers:
            await controller.stop()
        if self._shared is not None:
            self._shared.stop()
        if self._kubelet is not None:
            await self._kubelet.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    def add_nodes(self, nodes: Sequence[Json]) -> None:
        """Add ready nodes, without the taint that a created node carries at first."""
        admitting = Registry(self.store, self.registry.clock, taint_new_nodes=False)
        for node in nodes:
            metadata = dict(node["metadata"])
            admitting.create(NODES, "", {**node, "metadata": metadata})

    def _make_first_objects(self) -> None:
        for name in NAMESPACE_NAMES:
            self.registry.create(NAMESPACES, "", {"metadata": {"name": name}})
        for name, value in _SYSTEM_CLASSES:
            self.registry.create(PRIORITY_CLASSES, "", {"metadata": {"name": name}, "value": value})
        if self.options.rbac:
            make_bootstrap_roles(self.registry)
        self.add_nodes(self._nodes)


def _server_options(options: ClusterOptions) -> ServerOptions:
    host, _, port = options.listen.rpartition(":")
    if not port.isdigit():
        raise ValueError(f"listen: {options.listen!r} is not HOST:PORT")
    tls = None
    if options.cert_file is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(options.cert_file, options.key_file)
    return ServerOptions(
        host=host.strip("[]"),
        port=int(port),
        access=AccessOptions(options.token, options.users, options.rbac),
        tls=tls,
        max_pending_frames=options.max_pending_frames,
        faults_over_http=options.faults_over_http,
    )


async def run_cluster(
    nodes: Sequence[Json],
    options: ClusterOptions,
    kubeconfig_path: str | Path | None = None,
    on_ready: Callable[[EmbeddedCluster], None] | None = None,
) -> None:
    """Run a cluster until cancelled, as ``stowage cluster`` does.

    Args:
        nodes: Node objects that exist from the start.
        options: what to run and where to listen.
        kubeconfig_path: written once the server listens.
        on_ready: called with the cluster after that.
    """
    async with EmbeddedCluster(nodes, options) as cluster:
        if kubeconfig_path is not None:
            cluster.write_kubeconfig(kubeconfig_path)
        if on_ready is not None:
            on_ready(cluster)
        await asyncio.Event().wait()
