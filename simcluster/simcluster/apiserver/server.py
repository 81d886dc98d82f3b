"""The API server: HTTP on top of the registry, with authentication, watches and faults."""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import structlog
from aiohttp import web
from multidict import CIMultiDict

from simcluster.apiserver import errors
from simcluster.apiserver.connections import HttpServer, InFlight, make_room_for_connections
from simcluster.apiserver.discovery_endpoints import (
    PAGE_NOT_FOUND,
    TEXT_TYPE,
    DocumentRequest,
    Documents,
)
from simcluster.apiserver.endpoints import Answer, ApiRequest, Endpoints, check_verb, error_answer
from simcluster.apiserver.health import health_report, is_health_path
from simcluster.apiserver.paths import Target, parse_path, without_watch_prefix
from simcluster.apiserver.read_endpoints import Reader
from simcluster.apiserver.response_encoding import (
    common_headers,
    compressed,
    styled,
    warning_values,
    wishes_of,
)
from simcluster.auth.access import Access, AccessOptions
from simcluster.auth.impersonation import impersonated
from simcluster.auth.users import User
from simcluster.faults.disturbance import as_of_before, cut_short, disturb_stream
from simcluster.faults.endpoints import FAULTS_PATH, FaultEndpoints
from simcluster.faults.faults import FaultRule, Faults
from simcluster.ports import reserved_port
from simcluster.store.registry import Registry
from simcluster.store.watch import WatcherRegistry

MAX_BODY_BYTES = 3 * 1024 * 1024
BODY_TIMEOUT_S = 60.0
_AUDIT_ID_LENGTH = 64
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
        max_connections: requests on connections beyond these are answered 429.
        max_in_flight: so are requests, watches aside, while this many are being answered.
        faults_over_http: serve the fault injection of tests under ``/stowage/faults``.
    """

    host: str = "127.0.0.1"
    port: int = 0
    access: AccessOptions = field(default_factory=AccessOptions)
    tls: ssl.SSLContext | None = None
    max_pending_frames: int = 10_000
    max_connections: int = 4096
    max_in_flight: int = 600
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
        self._in_flight = InFlight(options.max_in_flight)
        self._reader = Reader(
            registry.store,
            self._endpoints,
            self.watchers,
            _response,
            self._in_flight,
            options.max_pending_frames,
        )
        self._http: HttpServer | None = None
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
        self._http = HttpServer(
            self._serve,
            make_room_for_connections(self._options.max_connections),
            request_factory=_make_request,
            handler_cancellation=True,
            access_log=None,
        )
        self._runner = web.ServerRunner(self._http, shutdown_timeout=0.5)
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
        """Close the listening socket and every connection, and come back on the same port.

        Nobody else is given the port meanwhile.
        """
        await self.stop()
        with reserved_port(self._options.host, self._port):
            await asyncio.sleep(seconds)
            await self.start()

    def forget_history(self) -> None:
        """Make every watch and page that starts in the past answer 410."""
        self._store.forget_history()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._http is not None and self._http.is_refused(request.protocol):
            response = _too_many_requests()
            response.force_close()
            return response
        if self._in_flight.is_full and not is_health_path(request.path):
            return _too_many_requests()
        try:
            with self._in_flight.counted():
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
        if rule.disturbs_answer:
            older = as_of_before(request, self._store.revision, rule.revisions_behind)
            disturb_stream(older, self.faults, rule)
            answer = await self._answer(older, user)
            return await cut_short(older, answer) if rule.is_cut else answer
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
        path, watches = without_watch_prefix(request.path)
        target = parse_path(path, self._registry.catalog)
        if target is None:
            return await self._document(request, request.path)
        method = request.method
        api_request = ApiRequest(
            method,
            path,
            request.query,
            request.content_type if method != "GET" and request.can_read_body else "",
            request.headers.get("Accept", ""),
            await _body(request) if method != "GET" else b"",
            user,
            request.headers.get("User-Agent", ""),
            "upgrade" in request.headers.get("Connection", "").lower(),
        )
        if method == "GET" and isinstance(target, Target) and not target.subresource:
            return await self._reader.read(request, api_request, target, watches)
        if watches:
            raise errors.method_not_allowed()
        if method == "DELETE" and isinstance(target, Target) and not target.name:
            check_verb(method, target)
            page = await self._endpoints.delete_collection(api_request, target)
            return await self._reader.send_list(request, page, api_request, target.resource)
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
        answer = Answer(found.status, found.body, 0, (), found.headers, found.content_type)
        return await _response(request, answer)


async def _body(request: web.BaseRequest) -> bytes:
    """The body of a request.

    Raises:
        ApiError: 413, it is too large; 408, the rest of it does not come.
    """
    try:
        if request.content.is_eof():
            return await request.read()
        async with asyncio.timeout(BODY_TIMEOUT_S):
            return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise errors.request_entity_too_large(MAX_BODY_BYTES) from error
    except TimeoutError as error:
        raise errors.ApiError(408, "Timeout", "the rest of the body did not arrive") from error


class _Request(web.BaseRequest):
    """A request whose answers carry its own id, and do not tell which library serves them."""

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        response.headers.pop("Server", None)
        if own_id := self.headers.get("Audit-ID", ""):
            response.headers["Audit-Id"] = own_id[:_AUDIT_ID_LENGTH]


def _make_request(
    message: Any, payload: Any, protocol: Any, writer: Any, task: "asyncio.Task[None]"
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return _Request(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES)


async def _response(request: web.BaseRequest, answer: Answer) -> web.Response:
    headers = CIMultiDict({**common_headers(), **answer.headers})
    if answer.retry_after_s:
        headers["Retry-After"] = str(answer.retry_after_s)
    for value in warning_values(answer.warnings):
        headers.add("Warning", value)
    if answer.status == HTTPStatus.NO_CONTENT:
        return web.Response(status=answer.status, headers=headers)
    body, headers["Content-Type"] = answer.body, answer.content_type
    if answer.content_type == "application/json" and body:
        wishes = wishes_of(request.headers, request.query)
        body, headers["Content-Type"] = styled(body, wishes)
        body, further = await compressed(body, wishes)
        headers.update(further)
    return web.Response(body=body, status=answer.status, headers=headers)


def _too_many_requests() -> web.Response:
    """429, as a request gets it before anything looks at it."""
    return web.Response(
        status=429,
        text="Too many requests, please try again later.\n",
        headers={"Retry-After": "1", "X-Content-Type-Options": "nosniff"},
    )


def _text(
    status: int, text: str, headers: Mapping[str, str] = MappingProxyType({})
) -> web.Response:
    all_headers = {**common_headers(), **headers, "Content-Type": TEXT_TYPE}
    all_headers["X-Content-Type-Options"] = "nosniff"
    return web.Response(body=text.encode(), status=status, headers=all_headers)
