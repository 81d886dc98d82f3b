"""Answers gets, lists and watches."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import structlog
from aiohttp import web

from simcluster.apiserver import errors
from simcluster.apiserver.connections import InFlight
from simcluster.apiserver.endpoints import Endpoints, deprecation
from simcluster.apiserver.formats import Format
from simcluster.apiserver.list_options import (
    ListOptions,
    check_list_options,
    completed,
    parse_list_options,
)
from simcluster.apiserver.listing import Page, list_page, parse_revision, wait_for_revision
from simcluster.apiserver.messages import Answer, ApiRequest, check_shape
from simcluster.apiserver.negotiation import check_streams, negotiate
from simcluster.apiserver.paths import Target
from simcluster.apiserver.response_encoding import (
    common_headers,
    is_plain,
    warning_values,
    wishes_of,
)
from simcluster.faults.disturbance import sink_of
from simcluster.kinds.resources import Resource
from simcluster.store.selection import Selection
from simcluster.store.store import HistoryLostError, Store
from simcluster.store.watch import Watcher, WatcherRegistry, WatchStream, bookmark, error_frame

Respond = Callable[[web.BaseRequest, Answer], Awaitable[web.StreamResponse]]

MIN_WATCH_S = 1800.0
"""A watch without a timeout ends after once to twice this time, as in kube-apiserver."""
STALL_S = 60.0
"""The connection of a client that reads nothing of an answer for this long is aborted."""
SLOW_WATCHER_S = 5.0
"""A watch that is closed as too slow ends within this time, or its connection is aborted."""
_JSON: Mapping[str, str] = {"Content-Type": "application/json"}

log = structlog.get_logger(__name__)


class _Opening(NamedTuple):
    """A watch about to be opened."""

    target: Target
    options: ListOptions
    selection: Selection
    format_: Format


class Reader:
    """Answers GET requests on resources.

    Args:
        store: the objects.
        endpoints: answers gets.
        watchers: registers watches.
        respond: turns an answer into a response.
        in_flight: does not count watches.
        max_pending_frames: watch events that may wait for a slow client before the watch is closed.
    """

    def __init__(
        self,
        store: Store,
        endpoints: Endpoints,
        watchers: WatcherRegistry,
        respond: Respond,
        in_flight: InFlight,
        max_pending_frames: int,
    ) -> None:
        self._store = store
        self._endpoints = endpoints
        self._watchers = watchers
        self._respond = respond
        self._in_flight = in_flight
        self._max_pending_frames = max_pending_frames

    async def read(
        self, request: web.BaseRequest, api_request: ApiRequest, target: Target, watches: bool
    ) -> web.StreamResponse:
        """Answer a get, list or watch.

        Args:
            request: the HTTP request.
            api_request: the same without HTTP.
            target: the addressed resource.
            watches: the path has the deprecated prefix of watches.

        Raises:
            ApiError: it is refused.
        """
        if target.name and not watches:
            negotiate(api_request.accept)
            asked = api_request.query.get("resourceVersion", "")
            await wait_for_revision(self._store, parse_revision(asked))
            return await self._respond(request, self._endpoints.handle(api_request, target))
        query, wanted = api_request.query, negotiate(api_request.accept)
        if watches:
            query = {**query, "watch": "true", **_named(target, query)}
        options = completed(parse_list_options(query))
        check_list_options(options)
        if options.watch:
            check_streams(wanted)
            format_ = api_request.format_for(target.resource)
            selection = Selection(
                target.resource, target.namespace, options.label_selector, options.field_selector
            )
            opening = _Opening(target, options, selection, format_)
            with self._in_flight.left_out():
                return await self._watch(request, opening)
        page = await list_page(self._store, target.resource, target.namespace, options)
        return await self.send_list(request, page, api_request, target.resource)

    async def send_list(
        self, request: web.BaseRequest, page: Page, api_request: ApiRequest, resource: Resource
    ) -> web.StreamResponse:
        """Answer a list; a large one is sent in slices, and other requests run between them."""
        check_shape(resource, api_request.accept, is_list=True)
        format_ = api_request.format_for(resource)
        is_plain_json = is_plain(wishes_of(request.headers, request.query))
        is_small = len(page.items) <= format_.items_per_slice or request.method == "HEAD"
        if is_small or not is_plain_json:
            body = format_.many(page.items, page.metadata)
            return await self._respond(request, Answer(200, body, 0, deprecation(resource)))
        response = web.StreamResponse(headers={**common_headers(), **_JSON})
        for value in warning_values(deprecation(resource)):
            response.headers.add("Warning", value)
        try:
            async with _abort_after(STALL_S, request) as deadline:
                await response.prepare(request)
                for part in format_.slices(page.items, page.metadata):
                    await response.write(part)
                    await asyncio.sleep(0)
                    deadline.reschedule(asyncio.get_running_loop().time() + STALL_S)
                await response.write(b"\n")
                await response.write_eof()
        except ConnectionError:
            log.debug("list client went away", path=request.path)
        return response

    async def _watch(self, request: web.BaseRequest, opening: _Opening) -> web.StreamResponse:
        options = opening.options
        after = parse_revision(options.resource_version)
        failure: errors.ApiError | None = None
        watcher = Watcher(
            opening.selection,
            opening.format_,
            self._max_pending_frames,
            0 if options.send_initial_events else after,
        )
        try:
            if options.send_initial_events:
                await wait_for_revision(self._store, after)
            self._begin(opening, watcher, after)
        except HistoryLostError as error:
            failure = errors.expired(str(error))
        except errors.ApiError as error:
            failure = error
        response = web.StreamResponse(headers={**common_headers(), **_JSON})
        try:
            await response.prepare(request)
            if failure is not None:
                await response.write(error_frame(failure))
            else:
                await self._follow(request, response, opening, watcher)
        except ConnectionError:
            log.debug("watch client went away", path=request.path)
        finally:
            self._watchers.release(watcher)
        with contextlib.suppress(ConnectionError):
            await response.write_eof()
        return response

    def _begin(self, opening: _Opening, watcher: Watcher, after: int) -> None:
        """Queue current objects or missed changes, and subscribe to later ones without a gap."""
        resource, options = opening.target.resource, opening.options
        collection = self._store.collection(resource.stored_in)
        if options.send_initial_events:
            now = self._store.revision
            found = collection.range_at(now, opening.selection.namespace)
            watcher.send_initial(found, self._store.subscribe(resource.stored_in, found.outlive))
            if options.allow_watch_bookmarks:
                watcher.send_frame(bookmark(opening.format_, now, initial_events_end=True))
        elif after:
            watcher.send_missed(collection.changes_since(after))
        self._watchers.open(resource.stored_in, watcher)

    async def _follow(
        self,
        request: web.BaseRequest,
        response: web.StreamResponse,
        opening: _Opening,
        watcher: Watcher,
    ) -> None:
        options = opening.options
        timeout_s = float(options.timeout_s)
        if timeout_s <= 0:
            timeout_s = MIN_WATCH_S * (1 + random.random())  # noqa: S311 - spreads reconnections
        stream = WatchStream(
            self._store,
            watcher,
            opening.format_,
            timeout_s,
            options.allow_watch_bookmarks and self._watchers.sends_bookmarks,
        )
        async with _abort_after(timeout_s + STALL_S, request) as deadline:
            clock = asyncio.get_running_loop().time
            watcher.on_overflow = lambda: deadline.reschedule(clock() + SLOW_WATCHER_S)
            await stream.run(sink_of(request, response))


def _named(target: Target, query: Mapping[str, str]) -> dict[str, str]:
    """The field selector that stands for a name in the path of a watch.

    Raises:
        ApiError: 400, the query selects another name.
    """
    if not target.name:
        return {}
    meant = f"metadata.name={target.name}"
    if query.get("fieldSelector", meant) not in {meant, f"metadata.name=={target.name}", ""}:
        raise errors.bad_request("fieldSelector metadata.name doesn't match requested name")
    return {"fieldSelector": meant}


@contextlib.asynccontextmanager
async def _abort_after(seconds: float, request: web.BaseRequest) -> Any:
    """Abort the connection of a client that does not read its answer in time."""
    try:
        async with asyncio.timeout(seconds) as deadline:
            yield deadline
    except TimeoutError as error:
        log.info("client does not read its answer; connection aborted", path=request.path)
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("the client does not read its answer") from error
