"""Keeps the engine told about all objects of one kind: list, watch, and list again when needed.

list (pages of 500) --> events, resourceVersion
^    |
|    v
|   watch from there -- ends or breaks --> watch again from the last resourceVersion
|    |
+----+  410 Gone, as a status or as an ERROR event: relist, and tell what vanished meanwhile

`Reflector.refresh` starts over from the list, whatever is under way; `Reflector.reconnect` goes on
from the last resourceVersion, over a connection that is known to be good. A list that is older than
what was seen before is not believed: by it, pods bound meanwhile would be gone, and their room
free.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

import msgspec
import structlog

from stowage.api.decoding.decode import (
    WatchError,
    check_is_versioned,
    decode_event_metadata,
    decode_list,
    decode_watch_event,
)
from stowage.api.decoding.errors import InvalidObject
from stowage.api.events import Event, ObjectInvalid
from stowage.api.objects.meta import ObjectMeta
from stowage.operator import clock
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff, Jitter, Sleep
from stowage.operator.inbox import Inbox
from stowage.operator.watch.event_order import EventOrder
from stowage.operator.watch.kinds import Identity, Reflected, ReflectedObject

T = TypeVar("T", bound=ReflectedObject)

PAGE_SIZE = 500
MIN_WATCH_S = 300
"""A watch is asked to last between this and twice this, as client-go does."""

GONE = 410

MAX_STALE_LISTS = 10
"""So many lists in a row that are too old are not believed; the next one is, for a server restored
from a backup stays behind for good."""

log = structlog.get_logger("stowage.operator.watch.reflector")


class _Metadata(msgspec.Struct, frozen=True):
    """What a watch event says even if the rest of its object cannot be understood."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class BrokenWatchError(Exception):
    """A line of a watch is no JSON: what it was to say is lost, unless it is watched for again."""


class StaleListError(Exception):
    """A list shows the cluster as it was before something that has been seen already."""


class RawReader(Protocol):
    """Somebody who reads along what a reflector reads, before it is decoded."""

    def take_page(self, body: bytes, *, is_first: bool) -> None:
        """Take one page of a list."""
        ...

    def take_line(self, line: bytes) -> None:
        """Take one line of a watch."""
        ...


class Reflector(Generic[T]):
    """Reflects one kind into the inbox, through outages, gaps and bad objects.

    Args:
        reflected: What to reflect.
        client: Of the API server.
        inbox: Where events go.
        jitter: Random numbers in 0..1.
        sleep: Waits that many seconds.
        raw_reader: Reads along; None if nobody does.
        monotonic: The process's clock, seconds.

    Attributes:
        has_synced: Whether the first list is in the inbox.
        num_lists: Lists that were read to the end; more than the first mean a gap in the watch.
        num_failures: Lists and watches that failed, or that the server ended without a word.
    """

    def __init__(
        self,
        reflected: Reflected[T],
        client: ApiClient,
        inbox: Inbox,
        jitter: Jitter,
        sleep: Sleep,
        raw_reader: RawReader | None = None,
        monotonic: Callable[[], float] = clock.monotonic,
    ) -> None:
        self.has_synced = False
        self.num_lists = 0
        self.num_failures = 0
        self._reflected = reflected
        self._client = client
        self._inbox = inbox
        self._jitter = jitter
        self._sleep = sleep
        self._raw_reader = raw_reader
        self._monotonic = monotonic
        self._heard_at = monotonic()
        self._backoff = Backoff(jitter, initial_s=0.2, max_s=client.patience.pause_s)
        self._resource_version = ""
        self._known: dict[tuple[str, str], str] = {}
        self._order = EventOrder()
        self._round: asyncio.Timeout | None = None
        self._num_refreshes = 0
        self._num_refreshes_listed = 0
        self._oldest_believed = 0
        self._num_stale_lists = 0
        self._was_lost = False
        self._is_pausing = False

    @property
    def kind(self) -> str:
        """What is reflected."""
        return self._reflected.kind

    @property
    def path(self) -> str:
        """Where it is listed."""
        return self._reflected.path

    @property
    def is_fresh(self) -> bool:
        """Whether a list begun after the last `refresh` is in the inbox."""
        return 0 < self._num_refreshes == self._num_refreshes_listed

    @property
    def silence_s(self) -> float:
        """How long ago the server said anything, a bookmark at least."""
        return self._monotonic() - self._heard_at

    def hear(self) -> None:
        """Note that the server has just said something."""
        self._heard_at = self._monotonic()

    def refresh(self, at_least: int = 0) -> None:
        """End a watch, a pause or an older list at once, and list anew; `is_fresh` tells when.

        Args:
            at_least: The resource version of something that the list must not be older than.
        """
        self._num_refreshes += 1
        self._oldest_believed = max(self._oldest_believed, at_least)
        self._start_over()

    def reconnect(self, silent_since: float | None) -> None:
        """The server is back: end a pause at once, and what was under way in vain.

        Args:
            silent_since: What has brought nothing since then goes over a connection that is perhaps
                dead on one side; None ends nothing but a pause.
        """
        was_deaf = silent_since is not None and self._heard_at < silent_since
        if self._is_pausing or was_deaf:
            self._start_over()

    def _start_over(self) -> None:
        self._backoff.reset()
        if self._round is not None and not self._round.expired():
            self._round.reschedule(0.0)

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            # Without a limit of its own: only `refresh` lets it expire.
            with suppress(TimeoutError):
                async with asyncio.timeout(None) as self._round:
                    await self._list_and_watch()

    async def _list_and_watch(self) -> None:
        while True:
            try:
                if not self._resource_version or self._num_refreshes_listed < self._num_refreshes:
                    await self._list()
                await self._watch()
            except ApiError as error:
                if error.status == GONE:
                    self._oldest_believed = self._seen_version()
                    self._resource_version = ""
                elif _is_from_the_future(error):
                    self._oldest_believed = 0
                    self._resource_version = ""
                if self._was_lost:
                    # The server is back: how long it was away says nothing of this error.
                    self._backoff.reset()
                self._was_lost = False
                await self._wait(error)
            except (
                *LOST_ANSWER_ERRORS,
                InvalidObject,
                StaleListError,
                BrokenWatchError,
            ) as error:
                # InvalidObject escapes only when the answer as a whole is no list.
                self._was_lost = isinstance(error, LOST_ANSWER_ERRORS)
                await self._wait(error)

    async def _wait(self, error: Exception | None) -> None:
        self.num_failures += 1
        delay = self._backoff.next_delay(error)
        log.info("reflector waits", kind=self.kind, seconds=round(delay, 3), error=repr(error))
        self._is_pausing = True
        try:
            await self._sleep(delay)
        finally:
            self._is_pausing = False

    async def _list(self) -> None:
        """Read everything there is, page by page, and tell what is no longer there."""
        # A refresh asked for from here on is not answered by what the server says now.
        num_refreshes = self._num_refreshes
        listed: set[tuple[str, str]] = set()
        # What does not say who it is may be anybody: then nobody is known to have vanished.
        is_complete = True
        params = {"limit": str(PAGE_SIZE), **self._selection()}
        while True:
            body = await self._client.get(
                self._reflected.path, params, self._client.patience.list_timeout
            )
            page = decode_list(self._reflected.type, body)
            check_is_versioned(page)
            self.hear()
            if "continue" not in params:
                self._check_age(page.metadata.resource_version)
            if self._raw_reader is not None:
                self._raw_reader.take_page(body, is_first="continue" not in params)
            events: list[Event] = []
            for found in page.items:
                listed.add((found.metadata.namespace, found.metadata.name))
                self._add_seen(found, events)
            for invalid in page.invalid:
                problem = object_invalid(invalid)
                listed.add((problem.namespace, problem.name))
                is_complete = is_complete and bool(problem.name)
                events.append(problem)
            self._inbox.put_all(events)
            if not page.metadata.continue_:
                break
            params["continue"] = page.metadata.continue_
        if is_complete:
            self._inbox.put_all(self._events_of_vanished(listed))
        self._resource_version = page.metadata.resource_version
        self._order.listed(as_number(self._resource_version))
        self._num_refreshes_listed = num_refreshes
        self.num_lists += 1
        self.has_synced = True
        # The loop may wait for nothing but this, and an empty list brings no event.
        self._inbox.wake()

    def _check_age(self, resource_version: str) -> None:
        """Believe a list unless it is too old.

        Raises:
            StaleListError: it is.
        """
        oldest = self._seen_version()
        if as_number(resource_version) < oldest and self._num_stale_lists < MAX_STALE_LISTS:
            self._num_stale_lists += 1
            raise StaleListError(f"resource version {resource_version} after {oldest}")
        if as_number(resource_version) < oldest:
            log.warning("believes an old list", kind=self.kind, resource_version=resource_version)
        self._num_stale_lists = 0
        self._oldest_believed = 0

    def _seen_version(self) -> int:
        """The newest resource version that is known to have been reached."""
        return max(self._oldest_believed, as_number(self._resource_version))

    def _events_of_vanished(self, listed: set[tuple[str, str]]) -> list[Event]:
        vanished = [key for key in self._known if key not in listed]
        return [self._reflected.gone(Identity(*key, self._known.pop(key))) for key in vanished]

    async def _watch(self) -> None:
        """Follow the changes until the server ends the watch."""
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._resource_version,
            "timeoutSeconds": str(int(MIN_WATCH_S * (1.0 + self._jitter()))),
            **self._selection(),
        }
        chunks = self._client.stream(self._reflected.path, params, self._client.patience.silence_s)
        was_silent = True
        async for lines in complete_lines(chunks):
            self.hear()
            events: list[Event] = []
            try:
                for line in lines:
                    self._take(line, events)
            finally:
                # What came before an ERROR event counts: the resource version is past it.
                self._inbox.put_all(events)
            was_silent = False
            self._backoff.reset()
        if was_silent:
            # A server that ends every watch at once must not be asked in a tight loop.
            await self._wait(None)

    def _take(self, line: bytes, events: list[Event]) -> None:
        """Decode one line of a watch.

        Raises:
            ApiError: an ERROR event.
        """
        try:
            event = decode_watch_event(self._reflected.type, line)
        except InvalidObject as invalid:
            self._take_invalid(line, invalid, events)
            return
        if isinstance(event, WatchError):
            raise ApiError(event.code, event.reason, event.message)
        metadata = event.object.metadata
        self._advance(metadata.resource_version)
        if event.type == "BOOKMARK" or not self._is_news(metadata):
            return
        if self._raw_reader is not None:
            self._raw_reader.take_line(line)
        if event.type == "DELETED":
            self._add_gone(Identity(metadata.namespace, metadata.name, metadata.uid), events)
        else:
            self._add_seen(event.object, events)

    def _take_invalid(self, line: bytes, invalid: InvalidObject, events: list[Event]) -> None:
        change, said = decode_event_metadata(line)
        metadata = _Metadata(
            said.get("namespace", ""),
            said.get("name", ""),
            said.get("uid", ""),
            said.get("resourceVersion", ""),
        )
        if invalid.field == "$" and not metadata.resource_version:
            raise BrokenWatchError(str(invalid))
        self._advance(metadata.resource_version)
        if not self._is_news(metadata):
            return
        if change == "DELETED" and metadata.name:
            self._add_gone(Identity(metadata.namespace, metadata.name, metadata.uid), events)
        else:
            events.append(object_invalid(invalid))

    def _advance(self, resource_version: str) -> None:
        """Watch from there next time, unless the watch was further already."""
        if not 0 < as_number(resource_version) <= as_number(self._resource_version):
            self._resource_version = resource_version or self._resource_version

    def _is_news(self, metadata: ObjectMeta | _Metadata) -> bool:
        key = (metadata.namespace, metadata.name)
        return self._order.is_news(key, as_number(metadata.resource_version))

    def _add_gone(self, identity: Identity, events: list[Event]) -> None:
        known_uid = self._known.pop((identity.namespace, identity.name), identity.uid)
        if known_uid != identity.uid:
            # Its successor could not be read, so nobody has told yet that this one went.
            events.append(self._reflected.gone(identity._replace(uid=known_uid)))
        events.append(self._reflected.gone(identity))

    def _add_seen(self, found: T, events: list[Event]) -> None:
        metadata = found.metadata
        key = (metadata.namespace, metadata.name)
        known_uid = self._known.get(key)
        if known_uid != metadata.uid:
            if known_uid is not None:
                # Deleted and created again behind our back: two objects, not one that changed.
                events.append(self._reflected.gone(Identity(*key, known_uid)))
            self._known[key] = metadata.uid
        events.append(self._reflected.seen(found))

    def _selection(self) -> dict[str, str]:
        selector = self._reflected.field_selector
        return {"fieldSelector": selector} if selector else {}


async def complete_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Regroup chunks into whole lines; a line cut off by the end of the stream is dropped."""
    parts: list[bytes] = []
    async for chunk in chunks:
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join((*parts, lines[0]))
            parts.clear()
            yield [line for line in lines if line]
        if rest:
            parts.append(rest)


def object_invalid(invalid: InvalidObject, scheduler_name: str = "") -> ObjectInvalid:
    """The finding as an event for the engine; `scheduler_name` is of a pod without a node."""
    namespace, _, name = invalid.name.rpartition("/")
    return ObjectInvalid(
        kind=invalid.kind,
        namespace=namespace,
        name=name,
        uid=invalid.uid,
        field=invalid.field,
        value=invalid.value,
        expectation=invalid.expectation,
        scheduler_name=scheduler_name,
    )


def _is_from_the_future(error: ApiError) -> bool:
    """Whether the last resource version has been undone: etcd was restored from a backup."""
    return "Too large resource version" in error.message


def as_number(resource_version: str) -> int:
    """A resource version, to be compared with others of the server; 0 if it is no number."""
    return int(resource_version) if resource_version.isdecimal() else 0
