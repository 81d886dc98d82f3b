"""A simulated cluster: API server, kubelet simulation and controllers in one object."""

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import structlog

from simcluster.apiserver.server import ApiServer, ServerOptions
from simcluster.auth.bootstrap_roles import make_bootstrap_roles
from simcluster.auth.kubeconfig import write_kubeconfig
from simcluster.clock import Clock
from simcluster.controllers import ControllerOptions, Reconciler, Shared, make_controllers
from simcluster.crds.controller import DefinitionController
from simcluster.faults.faults import Faults
from simcluster.kinds.first_objects import make_first_objects
from simcluster.kinds.resources import NODES
from simcluster.kubelet.kubelet import Kubelet, KubeletOptions
from simcluster.store.compaction import Compactor
from simcluster.store.loading import LoadReport, load_files
from simcluster.store.registry import Registry
from simcluster.store.saving import everything_in, write_dump
from simcluster.store.store import Store
from simcluster.timers import LoopTimers
from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates

Json = dict[str, Any]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class ClusterOptions(ServerOptions):
    """The components of a cluster and their options, besides those of the API server.

    Args:
        ca_file: PEM authority for the written kubeconfig.
        history_size: changes kept per resource, for five to ten minutes; a watch from before them,
            or from before the start, answers 410.
        with_kubelet: run bound pods.
        with_controllers: run the controllers of workloads, budgets, storage and nodes. Without them
            a created node does not get the not-ready taint.
        controllers: the controllers to run if not all are wanted.
        kubelet: how long pods take to start, run and stop.
        from_files: dumps to start from, see :func:`simcluster.store.loading.load_files`.
        refuse_unknown_kinds: fail on kinds in those files that are not served here.
        node_grace_s: how long a node may be silent before it is Unknown.
        service_accounts: give every namespace its default ServiceAccount and the ConfigMap
            ``kube-root-ca.crt``, and pods their ServiceAccount with its token volume, as a real
            control plane does; with controllers only.
        gates: feature gates, from :func:`simcluster.features.read_features`.
    """

    ca_file: str | Path | None = None
    history_size: int = 10_000
    with_kubelet: bool = True
    with_controllers: bool = True
    controllers: Sequence[type[Reconciler]] = ()
    kubelet: KubeletOptions = field(default_factory=KubeletOptions)
    from_files: Sequence[Path] = ()
    refuse_unknown_kinds: bool = False
    node_grace_s: float = 50.0
    service_accounts: bool = False
    gates: FeatureGates = DEFAULT_FEATURE_GATES


class SimulatedCluster:
    """A Kubernetes cluster in this process; ``async with`` starts and stops it.

    Args:
        nodes: Node objects that exist from the start, such as :func:`sample_nodes`' ones.
        options: components, address and limits.
        faults: injected faults.
        clock: the clock of all timestamps.

    Attributes:
        load_report: the result of loading ``options.from_files``.
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
            self.store,
            clock or Clock(),
            taint_new_nodes=self.options.with_controllers,
            gates=self.options.gates,
            admits_service_accounts=self.options.service_accounts and self.options.with_controllers,
        )
        self.server = ApiServer(self.registry, self.options, self.faults)
        self.load_report = LoadReport()
        self._nodes = nodes
        self._shared = Shared(self.registry)
        self._compactor = Compactor(self.store, LoopTimers())
        self._kubelet: Kubelet | None = None
        self._controllers: list[Reconciler] = []

    @property
    def url(self) -> str:
        """The address of the API server."""
        return self.server.url

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return len(self.store.collection(NODES.stored_in))

    def write_kubeconfig(self, path: str | Path) -> Path:
        """Write a kubeconfig for this cluster; returns its path."""
        options = self.options
        ca_file = (options.ca_file or options.cert_file) if options.cert_file else None
        return write_kubeconfig(path, self.url, options.token, ca_file)

    async def start(self) -> None:
        """Create the first objects, listen, and start the kubelet simulation and the controllers.

        Raises:
            OSError: the address is not available, or a dump cannot be read.
            DumpError: a file is no dump.
        """
        gc.disable()  # loaded objects stay, so that collections would find no garbage
        try:
            await self._start()
        finally:
            gc.enable()

    async def _start(self) -> None:
        self._make_first_objects()
        self._compactor.start()
        self._controllers = [DefinitionController(self._shared)]
        self._controllers[0].start()
        await self.server.start()
        if self.options.with_kubelet:
            self._kubelet = Kubelet(self.registry, self.options.kubelet)
            self._kubelet.start()
        made: list[Reconciler] = []
        if self.options.with_controllers:
            made = make_controllers(self._shared, self._controller_options())
        elif self.options.controllers:
            self._shared.index_pods()
            made = [controller(self._shared) for controller in self.options.controllers]
        self._controllers += made
        for controller in made:
            controller.start()
        self.server.on_restored = self._resync

    async def _resync(self) -> None:
        """Let the controllers look at every object: a restore changes none that they know."""
        for controller in self._controllers:
            await controller.stop()
            controller.start()

    async def stop(self) -> None:
        """Stop listening, end every watch, and stop the controllers and the kubelet simulation."""
        self._compactor.stop()
        await self.server.stop()
        for controller in self._controllers:
            await controller.stop()
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
        """Add ready nodes, without the not-ready taint of created nodes."""
        admitting = Registry(self.store, self.registry.clock, taint_new_nodes=False)
        for node in nodes:
            metadata = dict(node["metadata"])
            admitting.create(NODES, "", {**node, "metadata": metadata})

    async def save(self, path: Path) -> int:
        """Write all current objects to a file; returns their number.

        Raises:
            OSError: the file cannot be written.
        """
        objects = everything_in(self.registry)
        await asyncio.to_thread(write_dump, path, objects)
        return len(objects)

    def _controller_options(self) -> ControllerOptions:
        options = self.options
        ca_file = options.ca_file or options.cert_file
        authority = Path(ca_file).read_text(encoding="utf-8") if ca_file else ""
        return ControllerOptions(options.node_grace_s, options.service_accounts, authority)

    def _make_first_objects(self) -> None:
        options = self.options
        if options.from_files:
            self.load_report = load_files(
                self.registry, options.from_files, strict=options.refuse_unknown_kinds
            )
        make_first_objects(self.registry)
        if options.rbac:
            make_bootstrap_roles(self.registry)
        self.add_nodes(self._nodes)


async def run_cluster(
    nodes: Sequence[Json],
    options: ClusterOptions,
    kubeconfig_path: str | Path | None = None,
    on_ready: Callable[[SimulatedCluster], None] | None = None,
    save_path: Path | None = None,
) -> None:
    """Run a cluster until cancelled, as ``stowage cluster`` does.

    Args:
        nodes: Node objects that exist from the start.
        options: components, address and limits.
        kubeconfig_path: written once the server listens.
        on_ready: called with the cluster after that.
        save_path: file for all objects, written at the end and on SIGUSR1; SIGTERM then ends the
            cluster in order, too.
    """
    async with SimulatedCluster(nodes, options) as cluster:
        if kubeconfig_path is not None:
            cluster.write_kubeconfig(kubeconfig_path)
        if on_ready is not None:
            on_ready(cluster)
        # The current objects stay; the garbage collector need not look at them again.
        gc.collect()
        gc.freeze()
        if save_path is None:
            await asyncio.Event().wait()
        else:
            await run_and_save(cluster.save, save_path)


async def run_and_save(save: Callable[[Path], Awaitable[int]], path: Path) -> None:
    """Save on each SIGUSR1, and at the end, on SIGTERM or cancellation."""
    terminated, saves = asyncio.Event(), set[asyncio.Task[None]]()
    loop = asyncio.get_running_loop()

    async def save_now() -> None:
        try:
            log.info("saved", objects=await save(path), file=str(path))
        except OSError as error:
            log.error("not saved", file=str(path), why=str(error))

    def save_on_signal() -> None:
        task = loop.create_task(save_now())
        saves.add(task)
        task.add_done_callback(saves.discard)

    loop.add_signal_handler(signal.SIGTERM, terminated.set)
    loop.add_signal_handler(signal.SIGUSR1, save_on_signal)
    try:
        await terminated.wait()
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        loop.remove_signal_handler(signal.SIGUSR1)
        await asyncio.gather(*saves)
        await save_now()
