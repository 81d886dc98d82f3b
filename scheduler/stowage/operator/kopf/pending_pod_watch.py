"""Kopf watches our pending pods, which become events.

The session we give it reads along, because Kopf spends 0.3 ms on each object. Its lists are taken
whole and handed on empty, with the resource version from which it watches. Of its watch, the
lines about pods that left, nearly all bound by ourselves, are taken out and become bookmarks.
What is left for its handlers is what happens while it watches: pods that come, and that change.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Collection
from typing import Any, Literal, cast

import aiohttp
import msgspec

from stowage.api.objects.meta import ListMeta
from stowage.operator.client.backoff import Jitter, Sleep
from stowage.operator.client.connection import Connection
from stowage.operator.client.watch_lines import complete_lines
from stowage.operator.kopf.runner import KopfRunner, Watched
from stowage.operator.kopf.settings import pod_watching_settings, select_pods
from stowage.operator.watch.pending_pods import PendingPods, pending_pods_selector

PODS_PATH = "/api/v1/pods"


class PendingPodWatch:
    """Kopf, watching our pending pods.

    Args:
        connection: Kopf gets sessions of its own from it.
        pods: Where its events and lists go.
        scheduler_names: Of all profiles.
        after_start: Called each time Kopf has started; it takes over the process's signal handlers.
        jitter: Random numbers in 0..1.
        sleep: Waits that many seconds.
    """

    def __init__(
        self,
        connection: Connection,
        pods: PendingPods,
        scheduler_names: Collection[str],
        after_start: Callable[[], None],
        jitter: Jitter,
        sleep: Sleep,
    ) -> None:
        self._pods = pods
        self._scheduler_names = frozenset(scheduler_names)
        self._settings = pod_watching_settings(
            pending_pods_selector(scheduler_names), jitter, connection.timeouts
        )
        watched = Watched("pods", self._settings, pods.handle_event, self._read_lists_along)
        self._runner = KopfRunner(connection, watched, after_start, jitter, sleep)

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._runner.run()

    def select(self, scheduler_names: Collection[str]) -> None:
        """Watch for the pods of these profiles from now on.

        The new ones' pods may have been there for long, so everything is listed once more.
        """
        if self._scheduler_names == frozenset(scheduler_names):
            return
        self._scheduler_names = frozenset(scheduler_names)
        self._pods.select(scheduler_names)
        select_pods(self._settings, pending_pods_selector(scheduler_names))
        self._runner.restart()

    def reconnect(self, unresponsive_since: float | None) -> None:
        """List anew if Kopf is in trouble, or has heard nothing since then."""
        was_deaf = (
            unresponsive_since is not None and self._pods.last_activity_at < unresponsive_since
        )
        if self._runner.has_failing_requests or was_deaf:
            self._runner.restart()

    async def _read_lists_along(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        response = await handler(request)
        if not request.url.path.endswith(PODS_PATH) or not response.ok:
            return response
        query = request.url.query
        if "watch" in query:
            pods = self._pods
            content = DeletedEventFilter(
                response.content, pods.handle_removal, pods.note_activity, pods.handle_invalid_line
            )
            response.content = cast("aiohttp.StreamReader", content)
        else:
            body = await response.content.read()
            metadata = self._pods.handle_page(body, is_first="continue" not in query)
            emptied = EmptyListBody(response.content, metadata)
            response.content = cast("aiohttp.StreamReader", emptied)
        return response


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    resource_version: str


class _Headed(msgspec.Struct, frozen=True):
    metadata: _Metadata


class _Departure(msgspec.Struct, frozen=True):
    object: _Headed


_DEPARTURE_DECODER = msgspec.json.Decoder(_Departure)


class _Identity(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    uid: str
    resource_version: str


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Identity
    spec: dict[str, msgspec.Raw]


class _PodEvent(msgspec.Struct, frozen=True):
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: _Pod


_POD_EVENT_DECODER = msgspec.json.Decoder(_PodEvent)
_STRIDE = 2048
_NEIGHBOURING_DIGITS = re.compile(rb"[0-9]{2}")
_OF_OBJECTS = ("ADDED", "MODIFIED", "DELETED")
_NEEDED = ("name", "uid", "resourceVersion")
_DEPARTURE_START = b'{"type":"DELETED"'


class EmptyListBody:
    """The body of a list that was taken already: its metadata, and no items."""

    def __init__(self, content: aiohttp.StreamReader, metadata: ListMeta) -> None:
        self._content = content
        self._body = msgspec.json.encode({"metadata": metadata, "items": []})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    async def read(self) -> bytes:
        """The whole of it."""
        return self._body


class DeletedEventFilter:
    """The body of a watch in which departures are bookmarks; else as the reader it wraps.

    A bookmark still moves Kopf's resource version, so it resumes where the stream broke off.
    """

    def __init__(
        self,
        content: aiohttp.StreamReader,
        take: Callable[[str], None],
        note_activity: Callable[[], None] = lambda: None,
        handle_invalid_line: Callable[[bytes], str] = lambda _line: "",
    ) -> None:
        self._take_unreadable = handle_invalid_line
        self._content = content
        self._take = take
        self._hear = note_activity

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    def iter_chunked(self, _size: int) -> AsyncIterator[bytes]:
        """The chunks as they come, cut at line ends."""
        return self._filtered()

    async def _filtered(self) -> AsyncIterator[bytes]:
        async for lines in complete_lines(self._content.iter_any()):
            self._hear()
            yield b"".join([self._rewritten(line) + b"\n" for line in lines])

    def _rewritten(self, line: bytes) -> bytes:
        if not _is_plain(line) and not _is_readable(line):
            return _bookmark(self._take_unreadable(line))
        if not line.startswith(_DEPARTURE_START):
            return line
        metadata = _DEPARTURE_DECODER.decode(line).object.metadata
        self._take(metadata.uid)
        return _bookmark(metadata.resource_version)


def _is_plain(line: bytes) -> bool:
    """Whether `_is_readable` is sure to say yes; a fifth of its time.

    The decoder does not look into strings that it skips, and takes numbers of any length, while
    Python refuses those of more than 4,300 digits: such a one is seen at two of the places that
    are looked at here.
    """
    try:
        _POD_EVENT_DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return line.isascii() and not _NEIGHBOURING_DIGITS.search(line[::_STRIDE])


def _is_readable(line: bytes) -> bool:
    """Whether Kopf and its handler can read it: what they cannot ends the watch, each time."""
    try:
        event: Any = json.loads(line)
    except (ValueError, RecursionError):
        return False
    if not isinstance(event, dict) or not isinstance(event.get("object"), dict):
        return False
    if event.get("type") not in _OF_OBJECTS:
        return True
    metadata, spec = event["object"].get("metadata"), event["object"].get("spec")
    return (
        isinstance(metadata, dict)
        and isinstance(spec, dict)
        and all(isinstance(metadata.get(key), str) for key in _NEEDED)
    )


def _bookmark(resource_version: str) -> bytes:
    metadata = {"resourceVersion": resource_version} if resource_version else {}
    return msgspec.json.encode({"type": "BOOKMARK", "object": {"metadata": metadata}})
