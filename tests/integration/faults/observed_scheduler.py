"""A `stowage run` process, observed by its log and metrics, and a simulated cluster with faults."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from prometheus_client.parser import text_string_to_metric_families

from simcluster import ClusterOptions, FaultRule, SimulatedCluster, make_node
from simcluster.kinds.resources import PODS
from simcluster.ports import reserved_port
from simcluster.tests.support.api_client import MERGE, ApiClient
from simcluster.tests.support.api_client import PODS as PODS_PATH
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S, wait_until
from tests.support.integration.full_cluster import CAPACITY, small_pod
from tests.support.monitoring.fault_table import Series

Json = dict[str, Any]
Values = dict[Series, float]

TOKEN = "administrator"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
LEASE_S = 4.0

PLUGIN = """
from stowage.framework.authoring import SUCCESS


class Raises:
    name = "Raises"

    def filter_node(self, pod, node):
        if "raise-in-filter" in pod.labels:
            raise RuntimeError("as requested")

    async def pre_bind(self, state, pod, node_name):
        if "nothing-in-pre-bind" in pod.labels:
            return 5
        return SUCCESS
"""
EXTENDERS: dict[str, Json] = {
    "consulted": {"filterVerb": "filter"},
    "ignorable": {"filterVerb": "filter", "ignorable": True},
    "scoring": {"prioritizeVerb": "prioritize", "weight": 1},
}


def configuration(weight: int) -> str:
    """A configuration with every kind of extender, none of them reachable, and a plugin weight."""

    def extender(name: str, verbs: Mapping[str, Any]) -> Json:
        mine = [{"name": f"example.com/{name}", "ignoredByScheduler": True}]
        # Port 1: connections are refused.
        return {"urlPrefix": f"http://127.0.0.1:1/{name}", "managedResources": mine, **verbs}

    fit = {"name": "NodeResourcesFit"}
    plugins: Json = {
        "multiPoint": {"enabled": [{"name": "Raises"}]},
        "score": {"disabled": [fit], "enabled": [{**fit, "weight": weight}]},
    }
    return yaml.safe_dump(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 1,
            "extenders": [extender(*each) for each in EXTENDERS.items()],
            "profiles": [{"schedulerName": "stowage", "plugins": plugins}],
        }
    )


def _installed(folder: Path) -> Path:
    """Write the plugin to a folder for PYTHONPATH, as pip installs it."""
    about = folder / "raises-1.dist-info"
    about.mkdir(parents=True)
    (folder / "raises.py").write_text(PLUGIN)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: raises\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[stowage.plugins]\nRaises = raises:Raises\n")
    return folder


class ObservedScheduler:
    """A simulated cluster, a scheduler process, its log and its metrics."""

    def __init__(self, folder: Path, cluster: SimulatedCluster, api: ApiClient, port: int) -> None:
        self.cluster, self.api, self.port = cluster, api, port
        self.log = folder / "log"
        self._kubeconfig = cluster.write_kubeconfig(folder / "kubeconfig")
        self._plugins = _installed(folder / "plugins")
        self._read = 0
        self._process: asyncio.subprocess.Process | None = None
        self.num_pods = 0
        self.names: list[str] = []

    async def prepare(self) -> None:
        """Create what the process needs, and a lease held by another replica."""
        config_map = {"metadata": {"name": "stowage"}, "data": {"config.yaml": configuration(1)}}
        await self.api.create(CONFIG_MAPS, config_map)
        await self.api.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        spec = {"holderIdentity": "another", "leaseDurationSeconds": 3600}
        spec |= {"renewTime": "2036-01-01T00:00:00.000000Z", "leaseTransitions": 0}
        await self.api.create(LEASES, {"metadata": {"name": "stowage"}, "spec": spec})
        self.log.touch()

    async def wait_until_leader(self) -> None:
        """Wait until the process has the lease."""
        await wait_until(lambda: "became leader" in self.events())

    async def start(self, port: int | None = None) -> None:
        """Start the process."""
        flags = (
            *("--configmap=default/stowage", "--logging-format=json", "--bind-address=127.0.0.1"),
            *(
                f"--secure-port={self.port if port is None else port}",
                f"--kubeconfig={self._kubeconfig}",
            ),
            f"--leader-elect-lease-duration={LEASE_S}s",
            *("--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms"),
        )
        path = os.pathsep.join((str(self._plugins), *sys.path))
        with self.log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "stowage.cli", "run", *flags),
                stdout=output,
                stderr=output,
                env={**os.environ, "PYTHONPATH": path},
            )

    def send(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    async def exit_code(self) -> int:
        """The exit status of the process, once it has ended."""
        assert self._process is not None
        return await asyncio.wait_for(self._process.wait(), WAIT_TIMEOUT_S)

    async def close(self) -> None:
        """Kill the process if it runs."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    def events(self) -> set[str]:
        """The `event` fields of the log lines since `mark_log`."""
        lines = self.log.read_bytes()[self._read :].splitlines()
        return {json.loads(line)["event"] for line in lines if line.startswith(b"{")}

    def mark_log(self) -> None:
        """Ignore the log lines so far."""
        self._read = self.log.stat().st_size

    async def values(self, series: tuple[Series, ...]) -> Values:
        """The values of some series from /metrics; empty if it does not answer."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        try:
            async with (
                aiohttp.ClientSession(headers=headers) as session,
                session.get(f"https://127.0.0.1:{self.port}/metrics", ssl=False) as answer,
            ):
                text = await answer.text() if answer.status == 200 else ""
        except (aiohttp.ClientError, OSError):
            return {}
        return {each: _value(text, each) for each in series} if text else {}

    def fail(self, *rules: FaultRule) -> None:
        """Add fault rules."""
        for rule in rules:
            self.cluster.faults.add(rule)

    def pod(self, cpu: str = "10m", labels: Mapping[str, str] | None = None, **spec: Any) -> None:
        """Create a pod as a user."""
        self.num_pods += 1
        pod = small_pod(f"p{self.num_pods}", cpu, **spec)
        pod["metadata"]["labels"] = dict(labels or {})
        self.cluster.registry.create(PODS, "default", pod)
        self.names.append(f"p{self.num_pods}")

    def pod_requesting(self, resource: str) -> None:
        """Create a pod that requests the resource of an extender."""
        container = small_pod("c")["spec"]["containers"][0]
        container["resources"] = {"requests": {resource: "1"}, "limits": {resource: "1"}}
        self.pod(containers=[container])

    async def clear(self) -> None:
        """Delete every pod."""
        for name in self.names:
            await self.api.delete(f"{PODS_PATH}/{name}", {"gracePeriodSeconds": 0})
        self.names.clear()

    async def edit(self, text: str) -> None:
        """Edit the ConfigMap."""
        await self.api.patch(f"{CONFIG_MAPS}/stowage", {"data": {"config.yaml": text}}, MERGE)


def _value(text: str, series: Series) -> float:
    """The sum of all samples with these labels."""
    total = 0.0
    for family in text_string_to_metric_families(text):
        if family.name in (series.name, series.name.removesuffix("_total")):
            labelled = (each for each in family.samples if series.labels <= each.labels.items())
            total += sum(each.value for each in labelled if not each.name.endswith("_created"))
    return total


@asynccontextmanager
async def observed_scheduler(folder: Path) -> AsyncIterator[ObservedScheduler]:
    options = ClusterOptions(token=TOKEN)
    ssd, other = {"disk": "ssd"}, {"disk": "other"}
    nodes = [make_node("n0", dict(CAPACITY), ssd), make_node("n1", dict(CAPACITY), other)]
    async with (
        SimulatedCluster(nodes, options) as cluster,
        ApiClient(cluster.url, TOKEN) as api,
    ):
        with reserved_port() as port:
            scheduler = ObservedScheduler(folder, cluster, api, port)
            try:
                yield scheduler
            finally:
                await scheduler.close()
