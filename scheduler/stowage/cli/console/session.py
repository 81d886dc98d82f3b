"""Serves the console until a signal: makes its source, and keeps it up to date."""

from __future__ import annotations

import asyncio
import secrets
import shlex
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from stowage.api.config.feature_gates import parse_feature_gates
from stowage.cli.ask.decision_source import DecisionReader, DecisionSource
from stowage.cli.ask.flags import ClusterFlags
from stowage.cli.ask.recorded_objects import read_recorded
from stowage.cli.ask.source import UnreadableObjects, failures_reported, read_files, read_profiles
from stowage.cli.console.browser import open_page
from stowage.cli.console.following import follow_cluster, follow_decisions, keep_ticking
from stowage.cli.imports import garbage_collection_paused
from stowage.cli.plugin_discovery import discover_plugins
from stowage.cli.profiles import make_frameworks
from stowage.cli.terminal import terminal
from stowage.console.clusters.live import LiveCluster
from stowage.console.clusters.recorded import RecordedCluster
from stowage.console.clusters.source import ClusterSource, SourceName
from stowage.console.decisions.history import NONE, OBSERVED, SERVER, DecisionHistory
from stowage.console.serving.forked import ChildProcesses
from stowage.console.serving.questions import Questions
from stowage.console.serving.server import ConsoleServer
from stowage.console.stream.feed import Feed
from stowage.console.stream.hub import Hub
from stowage.framework import Framework
from stowage.operator.cancellation import cancel
from stowage.operator.client.kube_context import context_name
from stowage.operator.garbage_collection import raise_collection_thresholds
from stowage.operator.logging.setup import configure_logging
from stowage.recording.frames import UnreadableRecording, is_recording

Work = Callable[[], Awaitable[None]]
"""A task that runs as long as the console."""


def serve(flags: ClusterFlags, decisions: DecisionSource, port: int, *, opens: bool) -> int:
    """Serve the console until SIGINT or SIGTERM; the exit status.

    Exits with 1 if the cluster cannot be read.
    """
    console = terminal(stderr=True)
    configure_logging(json=False)
    raise_collection_thresholds()
    with failures_reported(console):
        reader = decisions.reader() if decisions.is_given else None
        # Made before the loop runs: reading a ConfigMap has its own.
        session = _Session(flags, reader, console)
        asyncio.run(session.run(port, opens=opens))
    return 0


class _Session:
    """A console from start to end.

    Args:
        flags: Name the cluster.
        reader: Reads the decisions of a scheduler; None for those that the watches show.
        console: For notes.
    """

    def __init__(
        self, flags: ClusterFlags, reader: DecisionReader | None, console: Console
    ) -> None:
        self._flags = flags
        self._reader = reader
        self._console = console
        self._children = ChildProcesses()
        self._hub = Hub(secrets.token_hex(4))
        self._work: list[Work] = []
        self._connected = asyncio.Event()
        self._cluster = self._source()

    async def run(self, port: int, *, opens: bool) -> None:
        """Serve until a signal, or until a part of the work fails.

        Raises:
            OSError: The port is taken, or the cluster cannot be reached.
        """
        questions = Questions(self._cluster, self._children, lambda: self._hub.announced)
        server = ConsoleServer(questions, self._hub, secrets.token_urlsafe(32))
        await server.start(port)
        tasks = [asyncio.ensure_future(work()) for work in self._work]
        stopping = asyncio.create_task(_stopped())
        connecting = asyncio.create_task(self._connect())
        try:
            await _first(connecting, [stopping, *tasks])
            if stopping.done():
                return
            self._console.print(f"the console is at {server.url}", soft_wrap=True, markup=False)
            if opens:
                with open_page(server.url):
                    await _first(stopping, tasks)
            else:
                await _first(stopping, tasks)
        finally:
            await cancel(*tasks, stopping, connecting)
            await server.stop()

    async def _connect(self) -> None:
        """Wait until the cluster has answered; files and recordings need no connection."""
        await self._connected.wait()

    def _source(self) -> ClusterSource:
        files = self._flags.files or ()
        for each in files:
            if str(each) != "-" and not each.exists():
                raise UnreadableObjects(f"{each}: No such file or directory")
        recordings = [each for each in files if each.is_dir() or is_recording(each)]
        if recordings:
            return self._recorded(recordings[0])
        return self._live(is_live=not files)

    def _recorded(self, path: Path) -> RecordedCluster:
        if self._reader is not None:
            raise UnreadableRecording(f"{path}: expected no other decisions beside a recording")
        recorded = read_recorded(self._flags)
        if recorded is None:
            raise UnreadableRecording(f"{path}: expected a recording")
        own = self._flags.config is None and self._flags.configmap is None
        configuration = recorded.configuration if own else read_profiles(self._flags)
        given = self._flags.feature_gates
        gates = parse_feature_gates(given) if given else recorded.gates

        def frameworks() -> Sequence[Framework]:
            return make_frameworks(configuration, discover_plugins(gates=gates))

        name = SourceName("recording", path.name, _flags_text(self._flags))
        cluster = RecordedCluster(name, path, frameworks, self._children.fork_lock)
        self._work.append(partial(self._read, cluster.read))
        self._connected.set()
        return cluster

    def _live(self, *, is_live: bool) -> LiveCluster:
        flags = self._flags
        gates = parse_feature_gates(flags.feature_gates or ())
        frameworks = make_frameworks(read_profiles(flags), discover_plugins(gates=gates))
        seen = OBSERVED if is_live else NONE
        history = DecisionHistory(seen if self._reader is None else SERVER)
        cluster = LiveCluster(_name(flags), frameworks, history, time.time, is_live=is_live)
        feed = Feed(self._hub, cluster, time.monotonic())
        cluster.decided = feed.decided
        if is_live:
            lock = self._children.fork_lock
            self._work.append(partial(follow_cluster, flags, cluster, feed, lock, self._connected))
        else:
            self._connected.set()
            self._work.append(partial(self._read, partial(self._load_files, cluster)))
        if self._reader is not None:
            self._work.append(
                partial(follow_decisions, self._reader, history, feed, self._console.print)
            )
        self._work.append(partial(keep_ticking, feed))
        return cluster

    async def _read(self, read: Callable[[], None]) -> None:
        async with self._children.fork_lock:
            await asyncio.to_thread(read)
        await asyncio.Event().wait()

    def _load_files(self, cluster: LiveCluster) -> None:
        with garbage_collection_paused():
            cluster.load(read_files(self._flags.files or ()))


def _name(flags: ClusterFlags) -> SourceName:
    if flags.files:
        names = ", ".join(each.name for each in flags.files)
        return SourceName("files", names, _flags_text(flags))
    context = flags.context or context_name(flags.kubeconfig)
    return SourceName("cluster", context, _flags_text(flags))


def _flags_text(flags: ClusterFlags) -> str:
    """The flags that name the cluster and the profiles, as a person types them."""
    words: list[str] = []
    named: dict[str, Sequence[object]] = {
        "--kubeconfig": [flags.kubeconfig],
        "--context": [flags.context],
        "--from": flags.files or (),
        "--config": [flags.config],
        "--configmap": [flags.configmap],
        "--feature-gates": flags.feature_gates or (),
    }
    for flag, values in named.items():
        for value in values:
            words += [flag, str(value)] if value is not None else []
    return shlex.join(words)


async def _stopped() -> None:
    """Wait for SIGINT or SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()


async def _first(stopping: asyncio.Task[None], tasks: Sequence[asyncio.Future[None]]) -> None:
    """Wait until the first one ends; the exception of a failed task is raised."""
    done, _ = await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
