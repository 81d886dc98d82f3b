"""Asks a simulated cluster, and measures the answers from outside."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec

from simcluster.cli.cluster_flags import Shape
from simcluster.harness.apply import create_all
from simcluster.harness.launch import NotReadyError, start_cluster
from simcluster.harness.processes import ChildProcesses
from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.connection import connect
from stowage_benchmarks.cluster.file import write_cluster_file
from stowage_benchmarks.process_cost import cpu_seconds_with_ended, has_children
from stowage_benchmarks.workloads import Json, pending_pod

_SCHEDULER_NAME = "default-scheduler"
_LOAD_TIMEOUT_S = 600.0
_ANSWER_TIMEOUT_S = 3600.0
_ENOUGH_S = 10.0
_PENDING = "pending-huge"
_REPLICAS = 100
_POLL_S = 0.01
_BUFFER = 2**20
_LAST_LINE = b"\n}\n"
_READY = "explain node node-00000"
"""A light question, which is answered once the shell has the cluster."""


@dataclass(frozen=True, slots=True)
class QuestionOptions:
    """Numbers of nodes, running pods and repetitions."""

    num_nodes: int
    num_pods: int
    rounds: int


class QuestionCost(msgspec.Struct, frozen=True):
    """What the answers to one question take.

    Attributes:
        first_s: A new process: from its start to its end.
        first_cpu_s: CPU time of this process.
        new_s: ``stowage shell``, which has the cluster in memory, and is asked for the first time.
        following_s: The same question again, the median.
        following_cpu_s: CPU time of such an answer, the mean.
    """

    question: str
    first_s: float
    first_cpu_s: float
    new_s: float
    following_s: float
    following_cpu_s: float


class Answers(msgspec.Struct, frozen=True):
    """All figures; `load_average` is that of the machine before."""

    nodes: int
    pods: int
    load_average: float
    costs: tuple[QuestionCost, ...]


def run_questions(options: QuestionOptions, say: Callable[[str], None]) -> Answers:
    """Run in separate processes.

    Raises:
        ProcessDiedError, NotReadyError, ApiError, OSError: The run could not be completed.
    """
    with (
        tempfile.TemporaryDirectory(prefix="stowage-questions-") as name,
        ChildProcesses(Path(name)) as processes,
    ):
        return asyncio.run(_run(options, processes, Path(name), say))


async def _run(
    options: QuestionOptions, processes: ChildProcesses, folder: Path, say: Callable[[str], None]
) -> Answers:
    load_average = round(os.getloadavg()[0], 2)
    say("starting a cluster")
    kubeconfig = await _start_cluster(options, processes, folder)
    questions = _questions(folder)
    first = {}
    for name, line in questions.items():
        first[name] = await _ask_once(line, kubeconfig)
        say(f"{name}: {first[name][0]:.2f} s")
    shell = await _Shell.start(kubeconfig)
    try:
        following = {
            name: await shell.ask_often(line, options.rounds) for name, line in questions.items()
        }
    finally:
        await shell.end()
    costs = tuple(QuestionCost(name, *first[name], *following[name]) for name in questions)
    return Answers(options.num_nodes, options.num_pods, load_average, costs)


async def _start_cluster(options: QuestionOptions, processes: ChildProcesses, folder: Path) -> Path:
    file = folder / "cluster.json"
    await write_cluster_file(
        file, options.num_nodes, options.num_pods, _SCHEDULER_NAME, with_owners=True
    )
    flags = (f"--from={file}", "--no-kubelet", "--no-controllers")
    kubeconfig = await start_cluster(
        processes, folder, 0, Shape.BENCH, *flags, timeout_s=_LOAD_TIMEOUT_S
    )
    connection = await connect(str(kubeconfig))
    try:
        await create_all(ApiClient(connection), [_pod(_PENDING, "100")])
    finally:
        await connection.close()
    return kubeconfig


def _pod(name: str, cpu: str) -> Json:
    pod = pending_pod("basic", 0, _SCHEDULER_NAME)
    pod["metadata"]["name"] = name
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return pod


def _questions(folder: Path) -> Mapping[str, str]:
    """Name -> command line; writes the manifests that they name."""
    pod, app = folder / "pod.json", folder / "app.json"
    pod.write_bytes(msgspec.json.encode(_pod("more", "500m")))
    template = _pod("app", "100m")
    template["metadata"]["labels"] = {"app": "app"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "app", "namespace": "default"},
        "spec": {
            "replicas": _REPLICAS,
            "selector": {"matchLabels": {"app": "app"}},
            "template": {"metadata": {"labels": {"app": "app"}}, "spec": template["spec"]},
        },
    }
    app.write_bytes(msgspec.json.encode(deployment))
    return {
        "explain a pending pod": f"explain pod {_PENDING}",
        "explain a placed pod": "explain pod init-000001",
        "explain a node": "explain node node-00001",
        f"what-if: {_REPLICAS} new pods": f"what-if -f {app}",
        "what-if: drain a node": "what-if --drain node-00001",
        "capacity": f"capacity -f {pod}",
        "compact": "compact",
    }


async def _ask_once(line: str, kubeconfig: Path) -> tuple[float, float]:
    """The seconds and the CPU seconds of a process that answers.

    Raises:
        NotReadyError: It does not answer.
    """
    words = (*shlex.split(line), "--kubeconfig", str(kubeconfig), "-o", "json")
    began, before = time.monotonic(), os.times()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "stowage.cli", *words),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    took_s, after = time.monotonic() - began, os.times()
    if process.returncode:
        raise NotReadyError(f"{line}: {errors.decode()}")
    cpu_s = after.children_user + after.children_system
    cpu_s -= before.children_user + before.children_system
    return round(took_s, 3), round(cpu_s, 3)


class _Shell:
    """A running ``stowage shell``."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        stdin: asyncio.StreamWriter,
        stdout: asyncio.StreamReader,
    ) -> None:
        self._process = process
        self._stdin = stdin
        self._stdout = stdout

    @classmethod
    async def start(cls, kubeconfig: Path) -> _Shell:
        """Start it, and wait until it has the cluster."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "stowage.cli", "shell", "--kubeconfig", str(kubeconfig)),
            stdin=pipe,
            stdout=pipe,
            limit=_BUFFER,
        )
        if process.stdin is None or process.stdout is None:
            raise NotReadyError("stowage shell has no pipes")
        shell = cls(process, process.stdin, process.stdout)
        await shell._ask(_READY)
        return shell

    async def ask_often(self, line: str, rounds: int) -> tuple[float, float, float]:
        """The seconds of a first answer; of others the median, and the mean of the CPU seconds.

        A question whose answers take long is asked less often.
        """
        began = time.monotonic()
        await self._ask(line)
        new_s = time.monotonic() - began
        cpu_s = await self._spent_s()
        times: list[float] = []
        while len(times) < rounds and sum(times) < _ENOUGH_S:
            began = time.monotonic()
            await self._ask(line)
            times.append(time.monotonic() - began)
        cpu_s = (await self._spent_s() - cpu_s) / len(times)
        return round(new_s, 4), round(median(times), 4), round(cpu_s, 4)

    async def _spent_s(self) -> float:
        """CPU seconds so far, once the process that answered has ended."""
        while has_children(self._process.pid):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(_POLL_S)
        return cpu_seconds_with_ended(self._process.pid)

    async def end(self) -> None:
        """End it."""
        self._process.kill()
        await self._process.wait()

    async def _ask(self, line: str) -> None:
        """Ask for JSON; its last line is a closing brace alone.

        Raises:
            NotReadyError: There is no answer.
        """
        self._stdin.write(f"{line} -o json\n".encode())
        end = b""
        try:
            async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                while end != _LAST_LINE:
                    part = await self._stdout.read(_BUFFER)
                    if not part:
                        raise NotReadyError(f"stowage shell ended at: {line}")
                    end = (end + part)[-len(_LAST_LINE) :]
        except TimeoutError as error:
            raise NotReadyError(f"stowage shell does not answer: {line}") from error
