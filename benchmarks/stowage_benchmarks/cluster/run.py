"""The benchmark of the simulated cluster: cost of requests, watches and objects.

The server runs in its own process and this process is the client, so CPU time and memory are the
server's alone. The cluster starts from a file and holds all pods during the measurements.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import uvloop
from rich.console import Console

from simcluster.cli.cluster_flags import Shape
from simcluster.harness.failures import FAILURES, failure_line
from simcluster.harness.launch import start_cluster
from simcluster.harness.processes import ChildProcesses
from simcluster.ports import reserved_port
from stowage_benchmarks.cluster.file import write_cluster_file
from stowage_benchmarks.cluster.http_load import (
    Address,
    LoadError,
    LongestWait,
    count_events,
    read_list,
    request_bytes,
    send_all,
)
from stowage_benchmarks.cluster.report import print_cluster_result
from stowage_benchmarks.cluster.result import ClusterResult, RequestCost, WatchCost
from stowage_benchmarks.process_cost import cpu_seconds, memory_mib, peak_memory_mib
from stowage_benchmarks.workloads import pending_pod

Json: TypeAlias = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
STRATEGIC = "application/strategic-merge-patch+json"
WATCHERS = 5
_SCHEDULER_NAME = "none"
_LOAD_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Numbers of nodes, pods and requests."""

    num_nodes: int
    num_pods: int
    num_requests: int


class ClusterBench:
    """One run.

    Args:
        options: The sizes.
        address: Of the server.
        pid: Process ID of the server.
    """

    def __init__(self, options: ClusterOptions, address: Address, pid: int) -> None:
        self._options = options
        self._address = address
        self._pid = pid

    async def run(self, load_s: float, file_mib: float) -> ClusterResult:
        """Measure.

        Raises:
            LoadError: the server refused a request.
        """
        options = self._options
        rss_mib = memory_mib(self._pid)
        requests = [await self._requests(kind, made) for kind, made in self._kinds()]
        with LongestWait(self._address, "/api/v1/namespaces/default") as wait:
            began = time.monotonic()
            list_bytes = await read_list(self._address, PODS)
            list_s = time.monotonic() - began
            watches = [await self._existing(), await self._missed(), await self._live()]
        return ClusterResult(
            nodes=options.num_nodes,
            pods=options.num_pods,
            load_s=round(load_s, 2),
            file_mib=round(file_mib, 1),
            rss_mib=round(rss_mib),
            peak_rss_mib=round(peak_memory_mib(self._pid)),
            list_s=round(list_s, 2),
            list_mib=round(list_bytes / 2**20, 1),
            longest_wait_ms=round(wait.seconds * 1000, 1),
            requests=tuple(requests),
            watches=tuple(watches),
        )

    def _post(self, path: str, body: Json) -> bytes:
        return request_bytes(self._address, "POST", path, msgspec.json.encode(body))

    def _kinds(self) -> Iterable[tuple[str, Iterable[bytes]]]:
        """The kinds of requests, each after the ones that it depends on."""
        numbers = range(self._options.num_requests)
        names = [f"pod-{number:06d}" for number in numbers]
        address, patch = self._address, msgspec.json.encode(_condition())
        pods = (pending_pod("mixed", number, _SCHEDULER_NAME) for number in numbers)
        yield "create a pod", [self._post(PODS, pod) for pod in pods]
        yield "get a pod", [request_bytes(address, "GET", f"{PODS}/{name}") for name in names]
        yield (
            "bind a pod",
            [
                self._post(f"{PODS}/{name}/binding", _binding(name, self._node(number)))
                for number, name in enumerate(names)
            ],
        )
        yield (
            "patch a pod's status",
            [
                request_bytes(address, "PATCH", f"{PODS}/{name}/status", patch, STRATEGIC)
                for name in names
            ],
        )
        yield "create an event", [self._post(EVENTS, _event(name)) for name in names]

    def _node(self, number: int) -> str:
        return f"node-{number % self._options.num_nodes:05d}"

    async def _requests(self, kind: str, requests: Iterable[bytes]) -> RequestCost:
        cpu_s, began = cpu_seconds(self._pid), time.monotonic()
        answered = await send_all(self._address, requests)
        took_s = time.monotonic() - began
        cpu_ms = (cpu_seconds(self._pid) - cpu_s) * 1000 / answered
        return RequestCost(kind, answered, round(answered / took_s), round(cpu_ms, 3))

    async def _existing(self) -> WatchCost:
        expected = self._options.num_pods + self._options.num_requests
        return await self._watch("what exists", PODS, "0", expected)

    async def _missed(self) -> WatchCost:
        """Patch every pod, then start watches from the revision before the patches."""
        before = await self._revision()
        body = msgspec.json.encode({"metadata": {"annotations": {"bench": before}}})
        patches = (
            request_bytes(self._address, "PATCH", f"{PODS}/pod-{number:06d}", body, STRATEGIC)
            for number in range(self._options.num_requests)
        )
        expected = await send_all(self._address, patches)
        return await self._watch("what was missed", PODS, before, expected)

    async def _live(self) -> WatchCost:
        """Delete all events with one request while watches are open."""

        async def delete_all() -> None:
            reader, writer = await asyncio.open_connection(*self._address[:2])
            writer.write(request_bytes(self._address, "DELETE", EVENTS))
            await reader.readuntil(b"\r\n")
            writer.close()

        revision = await self._revision()
        expected = self._options.num_requests
        return await self._watch("what happens", EVENTS, revision, expected, delete_all)

    async def _watch(
        self,
        kind: str,
        path: str,
        revision: str,
        expected: int,
        cause: Callable[[], Awaitable[None]] | None = None,
    ) -> WatchCost:
        cpu_s = cpu_seconds(self._pid)
        opened = [asyncio.Event() for _ in range(WATCHERS)]
        query = f"{path}?watch=1&resourceVersion={revision}"
        counts = asyncio.gather(
            *(count_events(self._address, query, expected, event) for event in opened)
        )
        if cause is not None:
            for event in opened:
                await event.wait()
            await cause()
        slowest_s = max(await counts)
        cpu_us = (cpu_seconds(self._pid) - cpu_s) * 1e6 / (expected * WATCHERS)
        return WatchCost(kind, WATCHERS, expected, round(expected / slowest_s), round(cpu_us, 2))

    async def _revision(self) -> str:
        reader, writer = await asyncio.open_connection(*self._address[:2])
        path = "/api/v1/namespaces/default/configmaps?limit=1"
        writer.write(request_bytes(self._address, "GET", path))
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
        body = msgspec.json.decode(await reader.readexactly(int(length)))
        writer.close()
        return str(body["metadata"]["resourceVersion"])


def _binding(pod: str, node: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, "namespace": "default"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def _condition() -> Json:
    condition = {"type": "Ready", "status": "True", "reason": "Bench", "message": "measured"}
    return {"status": {"phase": "Running", "conditions": [condition]}}


def _event(pod: str) -> Json:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{pod}.scheduled", "namespace": "default"},
        "eventTime": "2026-01-02T03:04:05.000000Z",
        "reportingController": "stowage",
        "reportingInstance": "stowage-bench",
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "note": f"Successfully assigned default/{pod} to a node",
        "regarding": {"kind": "Pod", "namespace": "default", "name": pod, "apiVersion": "v1"},
    }


async def _run(options: ClusterOptions, processes: ChildProcesses, folder: Path) -> ClusterResult:
    file = folder / "cluster.json"
    await write_cluster_file(file, options.num_nodes, options.num_pods, _SCHEDULER_NAME)
    began = time.monotonic()
    with reserved_port() as port:
        await start_cluster(
            processes,
            folder,
            0,
            Shape.BENCH,
            f"--from={file}",
            f"--listen=127.0.0.1:{port}",
            f"--watch-history={max(10_000, options.num_requests * 2)}",
            "--no-kubelet",
            "--no-controllers",
            timeout_s=_LOAD_TIMEOUT_S,
        )
    load_s = time.monotonic() - began
    bench = ClusterBench(options, Address("127.0.0.1", port), processes.children[0].pid)
    return await bench.run(load_s, file.stat().st_size / 2**20)


def run_cluster_bench(options: ClusterOptions, console: Console, as_json: bool) -> int:
    """Run the benchmark and print its result; the exit status."""
    with (
        tempfile.TemporaryDirectory(prefix="stowage-bench-") as name,
        ChildProcesses(Path(name)) as processes,
    ):
        try:
            result = uvloop.run(_run(options, processes, Path(name)))
        except (LoadError, *FAILURES) as error:
            console.print(failure_line(error))
            return 1
    if as_json:
        console.out(msgspec.json.encode(result).decode())
    else:
        print_cluster_result(console, result)
    return 0
