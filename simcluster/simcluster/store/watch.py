"""Watchers: the events of one watch request that are to be sent, and the end of its stream.

The store passes every change to every watcher of the collection synchronously; a watcher queues
encoded frames and never makes the store wait. A watcher that falls too far behind is closed, as the
API server does, and its client starts over.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Protocol

from simcluster.apiserver.errors import ApiError
from simcluster.apiserver.formats import Format
from simcluster.store.selection import Selection
from simcluster.store.store import Change, Store, Stored, encode

Json = dict[str, Any]

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
BOOKMARK_INTERVAL_S = 60.0
FRAMES_PER_CHUNK = 200
"""Frames of one watch that are sent, or objects that are tested, before other requests run."""
_LARGE_CHUNK_BYTES = 65_536


class ByteSink(Protocol):
    """The body of a streamed answer."""

    async def write(self, data: bytes) -> None:
        """Send bytes; returns when the transport can take more."""
        ...


def _do_nothing() -> None:
    """The callback of a watcher without a listener."""


def frame(type_: str, body: bytes) -> bytes:
    """One line of a watch stream."""
    return b'{"type":"' + type_.encode() + b'","object":' + body + b"}\n"


class Watcher:
    """The open watch of one client.

    Args:
        selection: the watched objects.
        format_: format of the objects.
        max_pending: frames that may wait before the watcher is closed as too slow.
        after_revision: changes up to this one are not sent.

    Attributes:
        is_closed: the stream ends.
        on_overflow: called when the watcher is closed as too slow.
    """

    def __init__(
        self, selection: Selection, format_: Format, max_pending: int, after_revision: int = 0
    ) -> None:
        self.is_closed = False
        self.on_overflow: Callable[[], None] = _do_nothing
        self._selection = selection
        self._format = format_
        self._max_pending = max_pending
        self._after_revision = after_revision
        self._backlog: Iterator[bytes] | None = None
        self._release_backlog: Callable[[], None] = _do_nothing
        self._pending: deque[bytes] = deque()
        self._wake = asyncio.Event()

    def offer(self, change: Change) -> None:
        """Queue a change if it concerns the selection."""
        if self.is_closed or change.revision <= self._after_revision:
            return
        seen = self._selection.view(change)
        if seen is None:
            return
        if len(self._pending) >= self._max_pending:
            self.close()
            self.on_overflow()
            return
        self._pending.append(self._encoded(change, *seen))
        self._wake.set()

    def _encoded(self, change: Change, type_: str, stored: Stored) -> bytes:
        key = (type_, self._format.cache_key)
        if not key[1]:
            return frame(type_, self._format.one(stored))
        found = change.frames.get(key)
        if found is None:
            found = change.frames[key] = frame(type_, self._format.one(stored))
        return found

    def send_initial(self, items: Iterable[Stored], release: Callable[[], None]) -> None:
        """Send an ADDED frame for each selected object before anything else.

        The frames are encoded when they are sent; ``items`` must not change until ``release`` is
        called.
        """
        self._release_backlog = release
        format_, matches = self._format, self._selection.matches
        self._backlog = (
            frame("ADDED", format_.one(each)) if matches(each) else b"" for each in items
        )

    def send_missed(self, changes: Iterable[Change]) -> None:
        """Send the changes before the watch was opened before anything else."""
        seen = ((change, self._selection.view(change)) for change in changes)
        self._backlog = (
            b"" if view is None else self._encoded(change, *view) for change, view in seen
        )

    def send_frame(self, data: bytes) -> None:
        """Queue a ready frame."""
        self._pending.append(data)
        self._wake.set()

    def wake(self) -> None:
        """Make the stream check its timers."""
        self._wake.set()

    def close(self) -> None:
        """Drop all queued frames and end the stream."""
        self.is_closed = True
        self.drop_backlog()
        self._pending.clear()
        self._wake.set()

    def drop_backlog(self) -> None:
        """Drop the rest of the initial or missed events."""
        self._backlog = None
        self._release_backlog()
        self._release_backlog = _do_nothing

    @property
    def has_backlog(self) -> bool:
        """Whether initial or missed events may be left."""
        return self._backlog is not None

    def take(self) -> bytes:
        """The next frames as one chunk, up to a limit; empty if there are none yet."""
        if self._backlog is not None:
            if frames := list(islice(self._backlog, FRAMES_PER_CHUNK)):
                return b"".join(frames)
            self.drop_backlog()
        if len(self._pending) > FRAMES_PER_CHUNK:
            return b"".join([self._pending.popleft() for _ in range(FRAMES_PER_CHUNK)])
        chunk = b"".join(self._pending)
        self._pending.clear()
        return chunk

    async def wait(self) -> None:
        """Wait until a frame is queued or a timer expires."""
        await self._wake.wait()
        self._wake.clear()


class WatchStream:
    """Sends a watcher's frames, bookmarks and end.

    Args:
        store: has the revision of bookmarks.
        watcher: the queue of frames.
        format_: format of bookmarks.
        timeout_s: duration of the stream.
        with_bookmarks: send bookmarks.
    """

    def __init__(
        self,
        store: Store,
        watcher: Watcher,
        format_: Format,
        timeout_s: float,
        with_bookmarks: bool,
    ) -> None:
        self._store = store
        self._watcher = watcher
        self._format = format_
        self._timeout_s = timeout_s
        self._with_bookmarks = with_bookmarks

    async def run(self, sink: ByteSink) -> None:
        """Send until the timeout, the end of the watcher or an error of the sink."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self._timeout_s
        bookmark_at = self._next_bookmark(loop.time(), ends_at)
        while not self._watcher.is_closed:
            if chunk := self._watcher.take():
                await sink.write(chunk)
                if len(chunk) > _LARGE_CHUNK_BYTES:
                    await asyncio.sleep(0)  # a sink that never blocks would never yield
                continue
            if self._watcher.has_backlog:
                await asyncio.sleep(0)
                continue
            now = loop.time()
            if now >= bookmark_at:
                await sink.write(bookmark(self._format, self._store.revision))
                bookmark_at = self._next_bookmark(now, ends_at)
                continue
            if now >= ends_at:
                return
            await self._sleep_until(loop, min(bookmark_at, ends_at))

    def _next_bookmark(self, now: float, ends_at: float) -> float:
        """A bookmark a minute, the last one shortly before the stream ends."""
        if not self._with_bookmarks:
            return float("inf")
        last = ends_at - min(1.0, self._timeout_s / 4)
        return float("inf") if now >= last else min(now + BOOKMARK_INTERVAL_S, last)

    async def _sleep_until(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        timer = loop.call_at(when, self._watcher.wake)
        try:
            await self._watcher.wait()
        finally:
            timer.cancel()


def bookmark(format_: Format, revision: int, *, initial_events_end: bool = False) -> bytes:
    """A BOOKMARK frame: kind, apiVersion and resourceVersion, no name or uid."""
    metadata: Json = {"resourceVersion": str(revision)}
    if initial_events_end:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    return frame("BOOKMARK", format_.bookmark(metadata))


def error_frame(error: ApiError) -> bytes:
    """An ERROR frame carrying a Status; the stream ends after it."""
    return frame("ERROR", encode(error.status()))


class WatcherRegistry:
    """Every open watch; fault injection and shutdown close them.

    Args:
        store: has the changes.
        sends_bookmarks: send bookmarks to the clients that ask for them.
    """

    def __init__(self, store: Store, sends_bookmarks: bool = True) -> None:
        self.sends_bookmarks = sends_bookmarks
        self._store = store
        self._open: dict[Watcher, Callable[[], None]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, collection: str, watcher: Watcher) -> None:
        """Subscribe a watcher to a collection."""
        self._open[watcher] = self._store.subscribe(collection, watcher.offer)

    def release(self, watcher: Watcher) -> None:
        """Unsubscribe a watcher."""
        watcher.drop_backlog()
        unsubscribe = self._open.pop(watcher, None)
        if unsubscribe is not None:
            unsubscribe()

    def close_all(self) -> int:
        """End every open watch; returns their number."""
        watchers = list(self._open)
        for watcher in watchers:
            watcher.close()
        return len(watchers)
