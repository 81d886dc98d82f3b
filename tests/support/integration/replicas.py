"""`stowage run` processes on one simulated cluster, and a record of their requests."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from simcluster import ClusterOptions, SimulatedCluster, write_kubeconfig
from simcluster.auth.rbac import Decision
from simcluster.auth.request_attributes import Attributes
from simcluster.auth.users import MASTERS, User
from simcluster.tests.support.api_client import NODES, PODS, ApiClient
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

ADMIN_TOKEN = "the-administrators-own-token"
WRITES = frozenset({"create", "update", "patch", "delete"})


@dataclass(frozen=True)
class Done:
    """A request that reached the API server."""

    at: float
    who: str
    verb: str
    resource: str
    subresource: str
    name: str


@dataclass
class Replica:
    """One process."""

    name: str
    process: asyncio.subprocess.Process
    log: Path

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def exit_code(self) -> int:
        return await asyncio.wait_for(self.process.wait(), WAIT_TIMEOUT_S)


class Replicas:
    """The cluster, its scheduler processes, and the record of their requests.

    Attributes:
        server: The URL that processes use: the cluster's own, or that of a proxy.
    """

    def __init__(self, cluster: SimulatedCluster, api: ApiClient, folder: Path) -> None:
        self.cluster = cluster
        self.api = api
        self.done: list[Done] = []
        self.started: list[Replica] = []
        self.server = cluster.url
        self._folder = folder
        cluster.server.access.audit = self._note

    async def start(self, name: str, *flags: str) -> Replica:
        """Start ``stowage run``; its requests are recorded under `name`."""
        folder = self._folder / name
        folder.mkdir()
        kubeconfig = write_kubeconfig(folder / "kubeconfig", self.server, token_of(name))
        log = folder / "log"
        command = (sys.executable, "-m", "stowage.cli", "run", f"--kubeconfig={kubeconfig}")
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *command, "--secure-port=0", *flags, stdout=output, stderr=output
            )
        replica = Replica(name, process, log)
        self.started.append(replica)
        return replica

    async def leader(self) -> Replica:
        """The replica that has bound the pods so far; waits until all have requested the lease."""
        names = {replica.name for replica in self.started}

        async def all_ask() -> bool:
            return names <= {done.who for done in self.done if done.resource == "leases"}

        await self.eventually(all_ask)
        (who,) = {done.who for done in self.bindings()}
        return next(replica for replica in self.started if replica.name == who)

    def leases(self) -> list[Done]:
        """All writes of the lease, successful or not."""
        return [done for done in self.done if done.resource == "leases" and done.verb in WRITES]

    def bindings(self) -> list[Done]:
        """All POSTs of a Binding."""
        return [done for done in self.done if done.subresource == "binding"]

    async def create(self, names: Iterable[str]) -> None:
        container = {"name": "c", "image": "registry.k8s.io/pause:3.10"}
        spec = {"schedulerName": "stowage", "containers": [container]}
        for name in names:
            await self.api.post(PODS, {"metadata": {"name": name}, "spec": spec})

    async def are_bound(self, names: Sequence[str]) -> None:
        """Return once all these pods are bound."""

        async def condition() -> bool:
            pods = (await self.api.get(PODS)).body["items"]
            nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in pods}
            return all(nodes.get(name) for name in names)

        await self.eventually(condition)

    async def eventually(self, condition: Callable[[], Awaitable[bool]]) -> None:
        try:
            async with asyncio.timeout(WAIT_TIMEOUT_S):
                while not await condition():  # noqa: ASYNC110 - the processes send no notification
                    await asyncio.sleep(0.02)
        except TimeoutError:
            logs = [f"{it.name}:\n{it.log.read_text()[-4000:]}" for it in self.started]
            raise AssertionError("\n".join(logs)) from None

    def _note(self, user: User, attributes: Attributes, decision: Decision) -> None:
        if user.name.startswith("replica-") and decision.is_allowed:
            it = attributes
            self.done.append(
                Done(time.monotonic(), user.name, it.verb, it.resource, it.subresource, it.name)
            )


def token_of(name: str) -> str:
    """The bearer token of a replica."""
    return f"secret-token-of-{name}"


@asynccontextmanager
async def replicas_of_a_cluster(folder: Path) -> AsyncIterator[Replicas]:
    """A cluster of two nodes without pods; kills all started processes at the end."""
    users = {
        token_of(f"replica-{letter}"): User(f"replica-{letter}", (MASTERS,)) for letter in "ab"
    }
    options = ClusterOptions(
        token=ADMIN_TOKEN, users=users, rbac=True, with_kubelet=False, with_controllers=False
    )
    async with (
        SimulatedCluster(options=options) as cluster,
        ApiClient(cluster.url, ADMIN_TOKEN, None) as api,
    ):
        capacity = {"cpu": "8", "memory": "16Gi", "pods": "500"}
        for name in ("n1", "n2"):
            status = {"capacity": capacity}
            await api.post(NODES, {"metadata": {"name": name}, "status": status})
        replicas = Replicas(cluster, api, folder)
        try:
            yield replicas
        finally:
            for replica in replicas.started:
                if replica.process.returncode is None:
                    replica.process.kill()
                    await replica.process.wait()
