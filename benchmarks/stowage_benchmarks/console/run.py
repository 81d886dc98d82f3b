"""Asks a running console, and measures its answers from outside."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeAlias

import aiohttp
import msgspec

from simcluster.harness.launch import NotReadyError
from stowage_benchmarks.cluster.file import write_cluster_file
from stowage_benchmarks.console.stream import StreamCost, measure_stream
from stowage_benchmarks.process_cost import cpu_seconds_with_ended, has_children
from stowage_benchmarks.workloads import Json, pending_pod

_SCHEDULER_NAME = "default-scheduler"
_PENDING = "pending-huge"
_START_TIMEOUT_S = 600.0
_POLL_S = 0.01
_ADDRESS = re.compile(r"the console is at (http://\S+)/\?token=(\S+)")


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """Numbers of nodes, running pods, repetitions, open pages and decisions."""

    num_nodes: int
    num_pods: int
    rounds: int
    num_pages: int
    num_decisions: int


class AnswerCost(msgspec.Struct, frozen=True):
    """What an answer takes.

    Attributes:
        median_s: Seconds from the request to the end of the answer.
        cpu_s: CPU time of the server and its children for one answer, the mean.
        kib: Size of the compressed answer.
        longest_wait_s: The longest answer to a light question that was asked meanwhile.
    """

    answer: str
    median_s: float
    cpu_s: float
    kib: float
    longest_wait_s: float


class ConsoleCosts(msgspec.Struct, frozen=True):
    """All figures; `load_average` is that of the machine before."""

    nodes: int
    pods: int
    load_average: float
    answers: tuple[AnswerCost, ...]
    stream: StreamCost


#: The address of the nth repetition, and its body; each differs, so that none is known already.
_Question: TypeAlias = Callable[[int], tuple[str, Json | None]]

_QUESTIONS: Mapping[str, _Question] = {
    "map": lambda n: (f"/api/cluster?group=label-{n}", None),
    "verdicts about a pod": lambda n: (f"/api/verdicts?pod=default/init-{n:06}", None),
    "a node": lambda n: (f"/api/nodes/node-{n:05}", None),
    "a pending pod": lambda n: (f"/api/pods/default/{_PENDING}-{n}", None),
    "a placed pod": lambda n: (f"/api/pods/default/init-{n:06}", None),
    "pending pods": lambda n: (f"/api/pending?limit={200 + n}", None),
    "search of pods": lambda n: (f"/api/pods?q={n:02}", None),
    "what-if: drain a node": lambda n: ("/api/what-if", {"drain": [f"node-{n:05}"]}),
}


def run_console(options: ConsoleOptions, say: Callable[[str], None]) -> ConsoleCosts:
    """Measure the answers of a process, and the stream in this one.

    Raises:
        NotReadyError, OSError: The run could not be completed.
    """
    load_average = round(os.getloadavg()[0], 2)
    with tempfile.TemporaryDirectory(prefix="stowage-console-") as name:
        answers = asyncio.run(_measure_answers(options, Path(name), say))
    say("stream")
    stream = measure_stream(options.num_nodes, options.num_pages, options.num_decisions)
    return ConsoleCosts(options.num_nodes, options.num_pods, load_average, answers, stream)


async def _measure_answers(
    options: ConsoleOptions, folder: Path, say: Callable[[str], None]
) -> tuple[AnswerCost, ...]:
    say("writing a cluster")
    cluster, pending = folder / "cluster.json", folder / "pending.json"
    await write_cluster_file(
        cluster, options.num_nodes, options.num_pods, _SCHEDULER_NAME, with_owners=True
    )
    pods = [_huge_pod(f"{_PENDING}-{number}") for number in range(options.rounds + 1)]
    pending.write_bytes(msgspec.json.encode(pods))
    async with _console("--from", str(cluster), "--from", str(pending)) as console:
        say("the console has read it")
        costs = []
        for name, question in _QUESTIONS.items():
            costs.append(await console.measure(name, question, options.rounds))
            say(f"{name}: {costs[-1].median_s:.3f} s")
        return tuple(costs)


def _huge_pod(name: str) -> Json:
    pod = pending_pod("basic", 0, _SCHEDULER_NAME)
    pod["metadata"].update(name=name, namespace="default", uid=name)
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100"}}
    return {**pod, "kind": "Pod"}


class _Console:
    """A running ``stowage console``."""

    def __init__(self, pid: int, session: aiohttp.ClientSession) -> None:
        self._pid = pid
        self._session = session

    async def until_ready(self) -> None:
        """Wait until the cluster is read.

        Raises:
            NotReadyError: It takes too long.
        """
        try:
            async with asyncio.timeout(_START_TIMEOUT_S):
                while not await self._is_ready():  # noqa: ASYNC110 - of another process
                    await asyncio.sleep(_POLL_S)
        except TimeoutError as error:
            raise NotReadyError("stowage console does not read the cluster") from error

    async def measure(self, name: str, question: _Question, rounds: int) -> AnswerCost:
        """Ask some times, one after the other, while a light question is asked all the time."""
        before = await self._spent_s()
        times: list[float] = []
        num_bytes = 0
        for number in range(rounds):
            began = time.monotonic()
            num_bytes = await self._ask(*question(number))
            times.append(time.monotonic() - began)
        cpu_s = (await self._spent_s() - before) / rounds
        longest_s = await self._longest_wait(question, rounds)
        return AnswerCost(
            name,
            round(median(times), 4),
            round(cpu_s, 4),
            round(num_bytes / 1024, 1),
            round(longest_s, 4),
        )

    async def _longest_wait(self, question: _Question, rounds: int) -> float:
        asking = asyncio.create_task(self._ask(*question(rounds)))
        longest_s = 0.0
        while not asking.done():
            began = time.monotonic()
            await self._ask("/api/decisions", None)
            longest_s = max(longest_s, time.monotonic() - began)
        await asking
        return longest_s

    async def _ask(self, path: str, body: Json | None) -> int:
        """The number of bytes of the answer.

        Raises:
            NotReadyError: There is none.
        """
        method = "GET" if body is None else "POST"
        async with self._session.request(method, path, json=body) as response:
            data = await response.content.read()
            if response.status != 200:
                raise NotReadyError(f"{path}: status {response.status}: {data[:200]!r}")
            return len(data)

    async def _is_ready(self) -> bool:
        async with self._session.get("/api/about") as response:
            return response.status == 200

    async def _spent_s(self) -> float:
        """CPU seconds so far, once the processes that answered have ended."""
        while has_children(self._pid):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(_POLL_S)
        return cpu_seconds_with_ended(self._pid)


@asynccontextmanager
async def _console(*flags: str) -> AsyncIterator[_Console]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "stowage.cli", "console", *flags), stderr=asyncio.subprocess.PIPE
    )
    try:
        line = await process.stderr.readline() if process.stderr else b""
        match = _ADDRESS.match(line.decode())
        if match is None:
            raise NotReadyError(f"stowage console: {line.decode().strip()}")
        headers = {"Authorization": f"Bearer {match[2]}", "Accept-Encoding": "gzip"}
        async with aiohttp.ClientSession(
            match[1], headers=headers, auto_decompress=False
        ) as session:
            console = _Console(process.pid, session)
            await console.until_ready()
            yield console
    finally:
        process.kill()
        await process.wait()
