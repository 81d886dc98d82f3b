"""Plain lists and watches that replace Kopf's: of pending pods and of the ConfigMap."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress

import msgspec

from stowage.api.decoding.decode import decode_list
from stowage.api.objects.pod import Pod
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff
from stowage.operator.client.connection import Connection
from stowage.operator.client.watch_lines import WatchLines
from stowage.operator.clock import Clock
from stowage.operator.configuration.config_map import ConfigMapReference
from stowage.operator.configuration.live_configuration import LiveConfiguration
from stowage.operator.configuration.reading import read_at_once
from stowage.operator.watch.pending_pods import PendingPods, pending_pods_selector
from tests.simulation.server import CONFIG_MAPS, PODS

TakeLine = Callable[[bytes], object]


class _Metadata(msgspec.Struct):
    resource_version: str = msgspec.field(name="resourceVersion", default="")


class _Object(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    code: int = 0


class _Line(msgspec.Struct):
    """What the watch itself reads of a line."""

    type: str
    object: _Object


class PlainWatch:
    """Lists and watches until cancelled; starts again with a list when the selector changes.

    Args:
        connection: The connection to the server.
        path: Path of the list.
        selector: Selector of the list and the watch.
        take_list: Takes the body of a list; returns its resource version.
        take_line: Takes a line of the watch: an event.
        clock: Supplies sleep and jitter.
    """

    def __init__(
        self,
        connection: Connection,
        path: str,
        selector: str,
        take_list: Callable[[bytes], str],
        take_line: TakeLine,
        clock: Clock,
    ) -> None:
        self._client = ApiClient(connection)
        self._path = path
        self._selector = selector
        self._take_list = take_list
        self._take_line = take_line
        self._backoff = Backoff(clock.jitter, 0.2, connection.timeouts.max_backoff_s)
        self._sleep = clock.sleep
        self._version = ""
        self._round: asyncio.Timeout | None = None

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(None) as self._round:
                    await self._list_and_watch()

    def select(self, selector: str) -> None:
        """Change the selector."""
        self._selector = selector
        self._version = ""
        if self._round is not None and not self._round.expired():
            self._round.reschedule(0.0)

    def reconnect(self) -> None:
        """End a pause or a watch, and resume from the last resource version."""
        self._backoff.reset()
        if self._round is not None and not self._round.expired():
            self._round.reschedule(0.0)

    async def _list_and_watch(self) -> None:
        while True:
            try:
                if not self._version:
                    body = await self._client.get(self._path, {"fieldSelector": self._selector})
                    self._version = self._take_list(body)
                await self._watch()
            except (ApiError, *LOST_ANSWER_ERRORS) as error:
                if isinstance(error, ApiError) and error.status == 410:
                    self._version = ""
                await self._sleep(self._backoff.next_delay(error))

    async def _watch(self) -> None:
        params = {
            "watch": "true",
            "resourceVersion": self._version,
            "fieldSelector": self._selector,
        }
        chunks = self._client.stream(self._path, params, self._client.timeouts.watch_idle_s)
        lines = WatchLines()
        async for chunk in chunks:
            for line in lines.complete(chunk):
                event = msgspec.json.decode(line, type=_Line)
                if event.type == "ERROR":
                    raise ApiError(event.object.code, "Expired")
                self._take_line(line)
                self._version = event.object.metadata.resource_version
            self._backoff.reset()


class PendingPodsWatch:
    """Has the interface of `stowage.operator.kopf.pending_pod_watch.PendingPodWatch`."""

    def __init__(
        self,
        connection: Connection,
        pods: PendingPods,
        scheduler_names: Collection[str],
        _after_start: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._pods = pods
        self._scheduler_names = frozenset(scheduler_names)
        selector = pending_pods_selector(scheduler_names)
        self._watch = PlainWatch(
            connection, PODS, selector, self._take_list, pods.handle_line, clock
        )

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._watch.run()

    def select(self, scheduler_names: Collection[str]) -> None:
        """Watch for the pods of these profiles."""
        if self._scheduler_names == frozenset(scheduler_names):
            return
        self._scheduler_names = frozenset(scheduler_names)
        self._pods.select(scheduler_names)
        self._watch.select(pending_pods_selector(scheduler_names))

    def reconnect(self, unresponsive_since: float | None) -> None:
        """Resume over a connection that is known to work."""
        if unresponsive_since is None or self._pods.last_activity_at < unresponsive_since:
            self._watch.reconnect()

    def _take_list(self, body: bytes) -> str:
        page = decode_list(Pod, body)
        return self._pods.handle_page(page, body, is_first=True).resource_version


class ReaderWithoutThread:
    """Has the interface of `stowage.operator.configuration.reading.ThreadReader`.

    The moment at which a thread ends does not depend on the seed alone.
    """

    read = staticmethod(read_at_once)

    async def close(self) -> None:
        """Nothing is held."""


class ConfigMapFollower:
    """Has the interface of `stowage.operator.kopf.config_map_watch.ConfigMapWatch`."""

    def __init__(
        self,
        connection: Connection,
        config_map: ConfigMapReference,
        configuration: LiveConfiguration,
        _after_start: Callable[[], None],
        clock: Clock,
    ) -> None:
        self.configuration = configuration
        self._watch = PlainWatch(
            connection,
            CONFIG_MAPS,
            f"metadata.name={config_map.name}",
            self._take_list,
            self._take_line,
            clock,
        )

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._watch.run()

    def _take_list(self, body: bytes) -> str:
        listed = msgspec.json.decode(body)
        if not listed["items"]:
            self.configuration.handle_missing()
        for obj in listed["items"]:
            self.configuration.handle_event(None, obj)
        version: str = listed["metadata"]["resourceVersion"]
        return version

    def _take_line(self, line: bytes) -> None:
        event = msgspec.json.decode(line)
        self.configuration.handle_event(event["type"], event["object"])
