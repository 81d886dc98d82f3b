"""A console of a cluster that changes on command, as a process: ``python -m ... PORT``.

Each line of standard input is a command. The process answers each with a line "done COUNT": how
many pods got a node so far.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.api.config.loading import load_configuration
from stowage.api.events import AssignedPodSeen, Event, NodeSeen, PendingPodSeen
from stowage.api.objects.node import Node
from stowage.cli.console.following import keep_ticking
from stowage.cli.profiles import make_frameworks
from stowage.console.answers.answer import rfc3339
from stowage.console.clusters.live import LiveCluster
from stowage.console.clusters.source import RECONNECTING, SourceName
from stowage.console.decisions.history import OBSERVED, DecisionHistory
from stowage.console.serving.forked import ChildProcesses
from stowage.console.serving.questions import Questions
from stowage.console.serving.server import ConsoleServer
from stowage.console.stream.feed import Feed
from stowage.console.stream.hub import Hub
from tests.support.builders import make_node, make_pod

TOKEN = "token-of-the-tests"
NUM_NODES = 6


class LiveConsole:
    """The console, and the changes of its cluster."""

    def __init__(self, port: int) -> None:
        self._port = port
        frameworks = make_frameworks(load_configuration())
        history = DecisionHistory(OBSERVED)
        name = SourceName("cluster", "changing", "")
        self._cluster = LiveCluster(name, frameworks, history, time.time, is_live=True)
        self._cluster.load(ClusterObjects())
        self._cluster.apply([NodeSeen(_node(index)) for index in range(NUM_NODES)])
        self._hub = Hub("test")
        self._feed = Feed(self._hub, self._cluster, time.monotonic())
        self._cluster.decided = self._feed.decided
        self._questions = Questions(self._cluster, ChildProcesses(), lambda: self._hub.announced)
        self._server: ConsoleServer | None = None
        self._num_pods = 0

    async def run(self) -> None:
        """Obey commands until the input ends."""
        ticking = asyncio.create_task(keep_ticking(self._feed))
        await self.do("start")
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        print("done", self._num_pods, flush=True)  # noqa: T201
        while line := await reader.readline():
            await self.do(*line.decode().split())
            print("done", self._num_pods, flush=True)  # noqa: T201
        ticking.cancel()
        await self.do("stop")

    async def do(self, command: str, *arguments: str) -> None:
        """Obey one command: start, stop, upstream STATE, cordon NODE, decide COUNT, wait COUNT."""
        match command:
            case "start":
                self._server = ConsoleServer(self._questions, self._hub, TOKEN)
                await self._server.start(self._port)
            case "stop":
                if self._server is not None:
                    await self._server.stop()
                    self._server = None
            case "upstream":
                text = "waits to read Node again" if arguments[0] == RECONNECTING else ""
                self._feed.source_is(arguments[0], text, time.monotonic())
            case "cordon":
                self._cluster.apply([NodeSeen(_node(int(arguments[0]), unschedulable=True))])
            case "decide":
                self._cluster.apply(self._decisions(int(arguments[0])))
            case "wait":
                pods = [make_pod(f"waits-{index}", cpu="64") for index in range(int(arguments[0]))]
                self._cluster.apply([PendingPodSeen(pod) for pod in pods])
            case _:
                raise ValueError(command)

    def _decisions(self, count: int) -> Sequence[Event]:
        events: list[Event] = []
        created = rfc3339(time.time())
        for number in range(self._num_pods, self._num_pods + count):
            name, node = f"web-{number}", f"node-{number % NUM_NODES}"
            pod = make_pod(name, cpu="1m", created=created)
            events.append(PendingPodSeen(pod))
            events.append(AssignedPodSeen(make_pod(name, cpu="1m", node=node, created=created)))
        self._num_pods += count
        return events


def _node(index: int, *, unschedulable: bool = False) -> Node:
    return make_node(
        f"node-{index}", cpu="16", pods=10_000, zone="zone-a", unschedulable=unschedulable
    )


if __name__ == "__main__":
    asyncio.run(LiveConsole(int(sys.argv[1])).run())
