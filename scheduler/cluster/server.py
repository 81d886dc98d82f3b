"""The API server: HTTP on top of the registry, with authentication, watches and faults."""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from scheduler.cluster import errors
from scheduler.cluster.access import Access, AccessOptions
from scheduler.cluster.documents import PAGE_NOT_FOUND, TEXT_TYPE, DocumentRequest, Documents
from scheduler.cluster.endpoints import (
    Answer,
    ApiRequest,
    Endpoints,
    error_answer,
    format_for,
    warnings,
)
from scheduler.cluster.fault_endpoints import FAULTS_PATH, FaultEndpoints
from scheduler.cluster.faults import FaultRule, Faults
from scheduler.cluster.formats import Format
from scheduler.cluster.health import health_report, is_health_path
from scheduler.cluster.impersonation import impersonated
from scheduler.cluster.listing import (
    ListOptions,
    list_page,
    parse_list_options,
    parse_revision,
    wait_for_revision,
)
from scheduler.cluster.paths import Target, parse_path
from scheduler.cluster.presentation import (
    Wishes,
    common_headers,
    compressed,
    styled,
)
from scheduler.cluster.registry import Registry
from scheduler.cluster.selection import Selection
from scheduler.cluster.store import HistoryLostError
from scheduler.cluster.users import User
from scheduler.cluster.watch import (
    Watcher,
    WatcherRegistry,
    WatchStream,
    bookmark,
    error_frame,
)

MAX_BODY_BYTES = 3 * 1024 * 1024
DEFAULT_WATCH_TIMEOUT_S = 1800.0
_LOOPBACK = ("127.", "localhost", "::1")

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class ServerOptions:
    """How the API server listens and guards itself.

    Args:
        host: address to listen on.
        port: 0 takes a free one.
        access: who may do what.
        tls: context of the listening socket; ``None`` speaks plain HTTP.
        max_pending_frames: watch events that may wait for a slow client before it is cut off.
        faults_over_http: serve the fault injection of tests under ``/stowage/faults``.
    """

    host: str = "127.0.0.1"
    port: int = 0
    access: AccessOptions = field(default_factory=AccessOptions)
    tls: ssl.SSLContext | None = None
    max_pending_frames: int = 10_000
    faults_over_http: bool = False


class ApiServer:
    """Serves a registry over HTTP.

    Args:
        registry: what is served.
        options: how.
        faults: what goes wrong on purpose.
    """

    def __init__(self, registry: Registry, options: ServerOptions, faults: Faults) -> None:
        self.watchers = WatcherRegistry(registry.store)
        self.faults = faults
        self.access = Access(options.access, registry.store, registry.clock)
        self._registry = registry
        self._store = registry.store
        self._options = options
        self._endpoints = Endpoints(registry, self.access)
        self._documents = Documents(registry.catalog, lambda: urlsplit(self.url).netloc)
        self._fault_endpoints = FaultEndpoints(self)
        self._runner: web.ServerRunner | None = None
        self._port = options.port

    @property
    def url(self) -> str:
        """Where the server listens; the host is the one given, 0.0.0.0 becomes the loopback."""
        scheme = "https" if self._options.tls else "http"
        host = self._options.host
        host = "127.0.0.1" if host in {"0.0.0.0", "::", ""} else host  # noqa: S104
        return f"{scheme}://{host}:{self._port}"

    async def start(self) -> None:
        """Listen; a port of 0 is chosen now and kept through restarts."""
        server = _HttpServer(
            self._serve, request_factory=_make_request, handler_cancellation=True, access_log=None
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(
            self._runner,
            self._options.host,
            self._port,
            ssl_context=self._options.tls,
            reuse_address=True,
            backlog=1024,
        )
        await site.start()
        if not self._options.access.token and not self._options.host.startswith(_LOOPBACK):
            log.warning("anyone who reaches this address may do anything", url=self.url)
        address = self._runner.addresses[0]
        self._port = int(address[1])

    async def stop(self) -> None:
        """Close the listening socket, every watch and every connection."""
        self.watchers.close_all()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def be_away(self, seconds: float) -> None:
        """Close the listening socket and every connection, and come back on the same port."""
        await self.stop()
        await asyncio.sleep(seconds)
        await self.start()

    def forget_history(self) -> None:
        """Make every watch and page that starts in the past answer 410."""
        self._store.forget_history()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._route(request)
        except errors.ApiError as error:
            return await _response(request, error_answer(error))
        except Exception as error:
            log.exception("request failed", method=request.method, path=request.path)
            failure = errors.internal(f"Internal error occurred: {error!r}")
            return await _response(request, error_answer(failure))

    async def _route(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if is_health_path(path):
            excluded = request.query.getall("exclude", [])
            return _text(*health_report(path, request.query, excluded))
        user = self.access.authenticate(request.headers.get("Authorization", ""))
        if "Impersonate-User" in request.headers or "Impersonate-Group" in request.headers:
            user = impersonated(
                user,
                request.headers.get("Impersonate-User", ""),
                request.headers.getall("Impersonate-Group", []),
                self.access.check_attributes,
            )
        self.access.check(user, request.method, path, request.query)
        if path.startswith(FAULTS_PATH) and self._options.faults_over_http:
            return await _response(request, await self._fault_endpoints.handle(request, path))
        rule = self.faults.take(request.method, request.path_qs)
        if rule is not None:
            return await self._fail(request, user, rule)
        return await self._answer(request, user)

    async def _fail(
        self, request: web.BaseRequest, user: User, rule: FaultRule
    ) -> web.StreamResponse:
        if rule.delay_s:
            await asyncio.sleep(rule.delay_s)
        if rule.is_applied:
            await self._answer(request, user)
        elif not (rule.status or rule.is_dropped or rule.hang_s):
            return await self._answer(request, user)
        if rule.hang_s:
            await asyncio.sleep(rule.hang_s)
        if rule.status:
            raise rule.error()
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=500)

    async def _answer(self, request: web.BaseRequest, user: User) -> web.StreamResponse:
        path = request.path
        target = parse_path(path, self._registry.catalog)
        if target is None:
            return await self._document(request, path)
        method = request.method
        api_request = ApiRequest(
            method,
            path,
            request.query,
            request.content_type if method != "GET" and request.can_read_body else "",
            request.headers.get("Accept", ""),
            await request.read() if method != "GET" else b"",
            user,
        )
        if method == "GET" and isinstance(target, Target) and not target.subresource:
            return await self._read(request, api_request, target)
        return await _response(request, self._endpoints.handle(api_request, target))

    async def _document(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        """A document, or the 404 that fits the path."""
        if path == "/metrics":
            return _text(200, "")
        headers = request.headers
        found = PAGE_NOT_FOUND
        if "//" not in path:
            asked = DocumentRequest(
                request.method,
                path,
                request.query,
                headers.get("Accept", ""),
                headers.get("If-None-Match", ""),
            )
            found = self._documents.answer(asked)
        if found.content_type == TEXT_TYPE:
            return _text(found.status, found.body.decode(), found.headers)
        answer = Answer(found.status, found.body, 0, found.headers, found.content_type)
        return await _response(request, answer)

    async def _read(
        self, request: web.BaseRequest, api_request: ApiRequest, target: Target
    ) -> web.StreamResponse:
        """A get, list or watch; the three that may name a resource version."""
        if target.name:
            await wait_for_revision(self._store, api_request.query.get("resourceVersion", ""))
            return await _response(request, self._endpoints.handle(api_request, target))
        options = parse_list_options(api_request.query)
        format_ = format_for(target.resource, api_request)
        if options.watch:
            return await self._watch(request, target, options, format_)
        await wait_for_revision(self._store, options.resource_version)
        page = list_page(self._store, target.resource, target.namespace, options)
        answer = Answer(200, format_.many(page.items, page.metadata), 0, warnings(target.resource))
        return await _response(request, answer)

    async def _watch(
        self, request: web.BaseRequest, target: Target, options: ListOptions, format_: Format
    ) -> web.StreamResponse:
        resource = target.resource
        selection = Selection(
            resource, target.namespace, options.label_selector, options.field_selector
        )
        with_initial = _wants_initial_events(options)
        after = 0 if with_initial else parse_revision(options.resource_version or "0")
        watcher = Watcher(selection, format_, self._options.max_pending_frames, after)
        headers = {**common_headers(), "Content-Type": "application/json"}
        response = web.StreamResponse(headers=headers)
        lost: HistoryLostError | None = None
        try:
            self._begin(target, options, watcher, selection, with_initial)
        except HistoryLostError as error:
            lost = error
        timeout_s = DEFAULT_WATCH_TIMEOUT_S if options.timeout_s is None else options.timeout_s
        stream = WatchStream(
            self._store, watcher, resource, timeout_s, options.allow_watch_bookmarks
        )
        try:
            await response.prepare(request)
            if lost is not None:
                await response.write(error_frame(errors.expired(str(lost))))
            else:
                await stream.run(response)
        except ConnectionError:
            log.debug("watch client went away", path=request.path)
        finally:
            self.watchers.release(watcher)
        with contextlib.suppress(ConnectionError):
            await response.write_eof()
        return response

    def _begin(
        self,
        target: Target,
        options: ListOptions,
        watcher: Watcher,
        selection: Selection,
        with_initial: bool,
    ) -> None:
        """Queue what exists or what was missed, and follow from here on, without a gap."""
        collection = self._store.collection(target.resource.stored_in)
        if with_initial:
            watcher.send_initial(selection.select(collection.items(selection.namespace)))
            if options.allow_watch_bookmarks:
                watcher.send_frame(
                    bookmark(target.resource, self._store.revision, initial_events_end=True)
                )
        else:
            for change in collection.changes_since(parse_revision(options.resource_version)):
                watcher.offer(change)
        self.watchers.open(target.resource.stored_in, watcher)


class _HttpServer(web.Server):
    """aiohttp's, which would go on serving connections accepted the moment it shut down."""

    _is_shut_down = False

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Keep a new connection, or end it at once."""
        if self._is_shut_down:
            transport.abort()
            return
        super().connection_made(handler, transport)

    async def shutdown(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - aiohttp's
        """Close every connection, those to come included."""
        self._is_shut_down = True
        await super().shutdown(timeout)


def _wants_initial_events(options: ListOptions) -> bool:
    """Without a resource version, or with 0, a watch starts with what exists."""
    if options.send_initial_events is not None:
        if options.send_initial_events and options.resource_version_match != "NotOlderThan":
            error = errors.forbidden_field(
                "resourceVersionMatch",
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            )
            raise errors.invalid("meta.k8s.io", "ListOptions", "", [error])
        return options.send_initial_events
    return options.resource_version in {"", "0"}


def _make_request(
    message: Any, payload: Any, protocol: Any, writer: Any, task: "asyncio.Task[None]"
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(
        message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES
    )


async def _response(request: web.BaseRequest, answer: Answer) -> web.Response:
    headers = {**common_headers(), **answer.headers}
    if answer.retry_after_s:
        headers["Retry-After"] = str(answer.retry_after_s)
    body, headers["Content-Type"] = answer.body, answer.content_type
    if answer.content_type == "application/json" and body:
        asked = request.headers
        accept = asked.get("Accept", "")
        wishes = Wishes(
            accept,
            request.query.get("pretty"),
            asked.get("User-Agent", ""),
            "gzip" in asked.get("Accept-Encoding", ""),
        )
        body, headers["Content-Type"] = styled(body, wishes)
        body, headers = await compressed(body, wishes, headers)
    return web.Response(body=body, status=answer.status, headers=headers)


def _text(
    status: int, text: str, headers: Mapping[str, str] = MappingProxyType({})
) -> web.Response:
    all_headers = {**common_headers(), **headers, "Content-Type": TEXT_TYPE}
    all_headers["X-Content-Type-Options"] = "nosniff"
    return web.Response(body=text.encode(), status=status, headers=all_headers)
