"""Keeps the engine informed about all objects of one kind: list, watch, and relist when needed.

list (pages of 500) --> events, resourceVersion
^    |
|    v
|   watch from there -- ends or breaks --> watch again from the last resourceVersion
|    |
+----+  404: an optional kind is not served; wait, and list again
|    |
+----+  410 Gone, as a status or as an ERROR event: relist, and report objects that are gone

`Reflector.refresh` relists at once. `Reflector.reconnect` resumes from the last resourceVersion
over a new connection. A list that is older than what was seen before is not used (`ListAge`).

A watch from a version that the API server has not reached is silent: the server was restored from
a backup. So before a watch resumes, the server is asked whether it has reached the version, unless
the watch before ended in its time and had data. If not, the list counts, however old it is: every
known object is reported as gone, and seen again if it is listed, because its version may have gone
back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec
import structlog

from stowage.api.decoding.decode import (
    ObjectList,
    WatchError,
    check_is_versioned,
    decode_event_metadata,
    decode_watch_event,
)
from stowage.api.decoding.errors import InvalidObject
from stowage.api.events import Event
from stowage.api.objects.meta import ObjectMeta
from stowage.api.reflected_kinds import Identity, ReflectedKind, ReflectedObject
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff, is_worth_retrying
from stowage.operator.client.list_pages import decode_page
from stowage.operator.client.outage_log import plain_message
from stowage.operator.client.resource_version import parse_resource_version
from stowage.operator.client.watch_lines import WatchLines
from stowage.operator.clock import Clock
from stowage.operator.extenders.objects import RawObjects
from stowage.operator.inbox import Inbox
from stowage.operator.watch.invalid_objects import invalid_object_event
from stowage.operator.watch.list_age import (
    ListAge,
    StaleListError,
    ask_whether_reached,
    doubt_stale_lists,
    is_from_the_future,
)
from stowage.operator.watch.stale_events import StaleEventFilter

T = TypeVar("T", bound=ReflectedObject)

PAGE_SIZE = 500
MIN_WATCH_S = 1.0
"""A watch that ends earlier and without data counts as failed, as in client-go."""

GONE = 410
NOT_SERVED = 404

UNSERVED_INTERVAL_S = 60.0
"""Seconds between two lists of an optional kind that the API server does not serve."""

log = structlog.get_logger("stowage.operator.watch.reflector")


class _Metadata(msgspec.Struct, frozen=True):
    """Metadata of an object that cannot be decoded."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class BrokenWatchError(Exception):
    """A line of a watch is not JSON; its event is lost unless the watch starts again before it."""


class NotServedError(Exception):
    """The API server does not serve the kind, and need not."""


class Reflector(Generic[T]):
    """Follows one kind and puts events into the inbox, through outages, gaps and invalid objects.

    Args:
        kind: The kind to follow.
        client: Client of the API server.
        inbox: Receives the events.
        clock: Time, sleep and jitter.
        raw_objects: Receives the raw objects for extenders; None if no extender needs them.
        on_restored: Called when the server was set back to an earlier state, before the events of
            its list.

    Attributes:
        has_synced: Whether the first list is in the inbox.
        num_lists: Number of complete lists; each after the first closes a gap in the watch.
        num_failures: Number of lists and watches that failed, and of watches that ended at once.
    """

    def __init__(
        self,
        kind: ReflectedKind[T],
        client: ApiClient,
        inbox: Inbox,
        clock: Clock,
        raw_objects: RawObjects | None = None,
        on_restored: Callable[[], None] = lambda: None,
    ) -> None:
        self.has_synced = False
        self.num_lists = 0
        self.num_failures = 0
        self._kind = kind
        self._client = client
        self._inbox = inbox
        self._clock = clock
        self._raw_objects = raw_objects
        self._on_restored = on_restored
        self._last_activity_at = clock.monotonic()
        self._backoff = Backoff(clock.jitter, initial_s=0.2, max_s=client.timeouts.max_backoff_s)
        self._resource_version = ""
        self._known: dict[tuple[str, str], str] = {}
        self._stale_events = StaleEventFilter()
        self._round: asyncio.Timeout | None = None
        self._num_refreshes = 0
        self._num_refreshes_listed = 0
        self._age = ListAge()
        self._is_restored = False
        self._may_be_restored = False
        self._was_unanswered = False
        self._is_backing_off = False

    @property
    def kind(self) -> str:
        """Name of the kind."""
        return self._kind.kind

    @property
    def path(self) -> str:
        """Path of the list."""
        return self._kind.path

    @property
    def is_backing_off(self) -> bool:
        """Whether the last list or watch failed, and the next one waits."""
        return self._is_backing_off

    @property
    def is_fresh(self) -> bool:
        """Whether a list that began after the last `refresh` is in the inbox."""
        return 0 < self._num_refreshes == self._num_refreshes_listed

    @property
    def idle_s(self) -> float:
        """Seconds since the API server last accepted a watch or sent data."""
        return self._clock.monotonic() - self._last_activity_at

    def note_activity(self) -> None:
        """Note that the API server has just accepted a watch or sent data."""
        self._last_activity_at = self._clock.monotonic()

    def refresh(self, at_least: int = 0) -> None:
        """End the current watch, backoff or list and list again; sets `is_fresh` when done.

        Args:
            at_least: Oldest resource version that the list may have.
        """
        self._num_refreshes += 1
        self._age.require(at_least)
        self._start_over()

    def reconnect(self, unresponsive_since: float | None) -> None:
        """End a backoff, or a request over a dead connection, because the API server is back.

        Args:
            unresponsive_since: When the server stopped answering; a connection without data since
                then may be dead. None ends a backoff only.
        """
        is_idle = unresponsive_since is not None and self._last_activity_at < unresponsive_since
        if self._is_backing_off or is_idle:
            self._start_over()

    def _start_over(self) -> None:
        self._backoff.reset()
        if self._round is not None and not self._round.expired():
            self._round.reschedule(0.0)

    async def run(self) -> None:
        """List and watch until cancelled.

        Raises:
            NotServedError: The kind is optional, and the API server does not serve it.
        """
        while True:
            # The timeout expires only through `_start_over`.
            with suppress(TimeoutError):
                async with asyncio.timeout(None) as self._round:
                    await self._list_and_watch()

    async def _list_and_watch(self) -> None:
        while True:
            try:
                await self._catch_up()
                await self._watch()
            except ApiError as error:
                if error.status == GONE:
                    self._resource_version = ""
                elif is_from_the_future(error):
                    self._age.doubt()
                    self._resource_version = ""
                elif error.status == NOT_SERVED and self._kind.is_optional:
                    raise NotServedError from error
                elif error.status == NOT_SERVED and self._kind.is_empty_if_unserved:
                    await self._wait_until_served()
                    continue
                if self._was_unanswered:
                    # The server answers again: the length of the outage does not matter any more.
                    self._backoff.reset()
                self._was_unanswered = False
                await self._back_off(error)
            except (
                *LOST_ANSWER_ERRORS,
                InvalidObject,
                StaleListError,
                BrokenWatchError,
            ) as error:
                # InvalidObject is raised only if the answer as a whole is not a list.
                self._was_unanswered = isinstance(error, LOST_ANSWER_ERRORS)
                await self._back_off(error)

    async def _catch_up(self) -> None:
        """List if that is needed, or make sure that the watch can resume."""
        if not self._resource_version or self._num_refreshes_listed < self._num_refreshes:
            await doubt_stale_lists(self._age, self._client, self._kind.path)
            await self._list()
        elif self._may_be_restored:
            await ask_whether_reached(self._client, self._kind.path, self._resource_version)
            self._may_be_restored = False

    async def _wait_until_served(self) -> None:
        """Report that there are no objects, and look again later: the API may be added."""
        if not self.has_synced:
            log.info("not served", kind=self.kind, path=self.path)
        self.report_all_gone()
        self._resource_version = ""
        self._num_refreshes_listed = self._num_refreshes
        self.has_synced = True
        self._inbox.wake()
        await self._clock.sleep(UNSERVED_INTERVAL_S)

    async def _back_off(self, error: Exception | None) -> None:
        self.num_failures += 1
        delay = self._backoff.next_delay(error)
        self._log_failure(delay, error)
        self._is_backing_off = True
        try:
            await self._clock.sleep(delay)
        finally:
            self._is_backing_off = False

    def _log_failure(self, delay: float, error: Exception | None) -> None:
        """Log a failure; during an outage, the `OutageLog` has a line for all reflectors."""
        if error is None:
            log.debug("reflector waits", kind=self.kind, seconds=round(delay, 3))
            return
        if isinstance(error, ApiError) and error.is_transient:
            self._client.outages.note_failure(error)
        write = log.debug if is_worth_retrying(error) else log.info
        write(
            "reflector waits",
            kind=self.kind,
            seconds=round(delay, 3),
            error=plain_message(error),
        )

    async def _list(self) -> None:
        """Read the whole list, and report the objects that are gone since the last list."""
        # A refresh requested from here on needs another list.
        num_refreshes = self._num_refreshes
        listed: set[tuple[str, str]] = set()
        async for page in self._pages():
            self._inbox.put_all(self._events_of_page(page, listed))
        # An invalid object without a name may be any object, so none counts as gone.
        if all(name for _, name in listed):
            self._inbox.put_all(self._events_of_vanished(listed))
        self._is_restored = self._may_be_restored = False
        self._resource_version = page.metadata.resource_version
        self._age.note(self._resource_version)
        self._stale_events.listed(parse_resource_version(self._resource_version))
        self._num_refreshes_listed = num_refreshes
        self.num_lists += 1
        self.has_synced = True
        # The loop may be waiting for this list only, and an empty list brings no event.
        self._inbox.wake()

    async def _pages(self) -> AsyncIterator[ObjectList[T]]:
        """The pages of the list.

        Raises:
            StaleListError: the list is too old.
        """
        params = {"limit": str(PAGE_SIZE), **self._selection()}
        timeout = self._client.timeouts.list_timeout
        is_first, token = True, ""
        while is_first or token:
            body = await self._client.get(self._kind.path, params, timeout)
            page = await decode_page(self._kind.type, body)
            check_is_versioned(page)
            self.note_activity()
            if is_first:
                self._check_age(page.metadata.resource_version)
            if self._raw_objects is not None:
                self._raw_objects.handle_page(body, is_first=is_first)
            yield page
            is_first, token = False, page.metadata.continue_
            params["continue"] = token

    def _events_of_page(self, page: ObjectList[T], listed: set[tuple[str, str]]) -> list[Event]:
        """The events of one page; adds its objects' namespaces and names to `listed`."""
        events: list[Event] = []
        for found in page.items:
            listed.add((found.metadata.namespace, found.metadata.name))
            self._add_seen(found, events)
        for invalid in page.invalid:
            event = invalid_object_event(invalid)
            listed.add((event.namespace, event.name))
            events.append(event)
        return events

    def _check_age(self, resource_version: str) -> None:
        """Check that a list is not older than what was seen before.

        Raises:
            StaleListError: the list is too old.
        """
        if self._age.has_gone_back(resource_version):
            log.warning("believes an old list", kind=self.kind, resource_version=resource_version)
            self._is_restored = True
            self._on_restored()

    def report_all_gone(self) -> None:
        """Report that every object is gone, because the kind is not served any more."""
        self._inbox.put_all(self._events_of_vanished(set()))

    def _events_of_vanished(self, listed: set[tuple[str, str]]) -> list[Event]:
        vanished = [key for key in self._known if key not in listed]
        return [self._kind.gone(Identity(*key, self._known.pop(key))) for key in vanished]

    async def _watch(self) -> None:
        """Handle the events of a watch until the server ends it."""
        timeouts = self._client.timeouts
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._resource_version,
            "timeoutSeconds": str(timeouts.watch_timeout_s(self._clock.jitter())),
            **self._selection(),
        }
        began_at, lasts_s = self._clock.monotonic(), float(params["timeoutSeconds"])
        self._may_be_restored = True
        chunks = self._client.stream(
            self._kind.path, params, timeouts.watch_idle_s, self.note_activity
        )
        is_empty, watch_lines = True, WatchLines()
        async for chunk in chunks:
            lines = watch_lines.complete(chunk)
            if not lines:
                continue
            self.note_activity()
            events: list[Event] = []
            try:
                for line in lines:
                    self._handle_line(line, events)
            finally:
                # The resource version is past the events before an ERROR event: keep them.
                self._inbox.put_all(events)
            is_empty = False
            self._backoff.reset()
        took_s = self._clock.monotonic() - began_at
        self._may_be_restored = is_empty or took_s < lasts_s
        if is_empty and took_s < MIN_WATCH_S:
            # Do not retry in a tight loop if the server ends every watch at once.
            await self._back_off(None)
        else:
            self._backoff.reset()

    def _handle_line(self, line: bytes, events: list[Event]) -> None:
        """Decode one line of a watch and append its events.

        Raises:
            ApiError: the line is an ERROR event.
            BrokenWatchError: the line is not JSON.
        """
        try:
            event = decode_watch_event(self._kind.type, line)
        except InvalidObject as invalid:
            self._handle_invalid(line, invalid, events)
            return
        if isinstance(event, WatchError):
            raise ApiError(event.code, event.reason, event.message)
        metadata = event.object.metadata
        self._advance(metadata.resource_version)
        if event.type == "BOOKMARK" or not self._is_new(metadata):
            return
        if event.type == "DELETED":
            if self._raw_objects is not None:
                self._raw_objects.drop(metadata)
            self._add_gone(Identity(metadata.namespace, metadata.name, metadata.uid), events)
        else:
            if self._raw_objects is not None:
                self._raw_objects.handle_line(line)
            self._add_seen(event.object, events)

    def _handle_invalid(self, line: bytes, invalid: InvalidObject, events: list[Event]) -> None:
        change, fields = decode_event_metadata(line)
        metadata = _Metadata(
            fields.get("namespace", ""),
            fields.get("name", ""),
            fields.get("uid", ""),
            fields.get("resourceVersion", ""),
        )
        if invalid.field == "$" and not metadata.resource_version:
            raise BrokenWatchError(str(invalid))
        self._advance(metadata.resource_version)
        if not self._is_new(metadata):
            return
        if change == "DELETED" and metadata.name:
            self._add_gone(Identity(metadata.namespace, metadata.name, metadata.uid), events)
        else:
            events.append(invalid_object_event(invalid))

    def _advance(self, resource_version: str) -> None:
        """Start the next watch from this version, unless an event with a later one has arrived."""
        if (
            not 0
            < parse_resource_version(resource_version)
            <= parse_resource_version(self._resource_version)
        ):
            self._resource_version = resource_version or self._resource_version
            self._age.note(resource_version)

    def _is_new(self, metadata: ObjectMeta | _Metadata) -> bool:
        key = (metadata.namespace, metadata.name)
        return self._stale_events.is_new(key, parse_resource_version(metadata.resource_version))

    def _add_gone(self, identity: Identity, events: list[Event]) -> None:
        known_uid = self._known.pop((identity.namespace, identity.name), identity.uid)
        if known_uid != identity.uid:
            # The object was recreated and its successor is invalid: report the old one as gone.
            events.append(self._kind.gone(identity._replace(uid=known_uid)))
        events.append(self._kind.gone(identity))

    def _add_seen(self, found: T, events: list[Event]) -> None:
        metadata = found.metadata
        key = (metadata.namespace, metadata.name)
        known_uid = self._known.get(key)
        if known_uid != metadata.uid or self._is_restored:
            if known_uid is not None:
                # Deleted and recreated while no watch was open: two objects, not a change of one.
                # Restored: the engine would ignore the object, whose version is older.
                events.append(self._kind.gone(Identity(*key, known_uid)))
            self._known[key] = metadata.uid
        events.append(self._kind.seen(found))

    def _selection(self) -> dict[str, str]:
        selector = self._kind.field_selector
        return {"fieldSelector": selector} if selector else {}
