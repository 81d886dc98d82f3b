"""The API server: HTTP on top of the registry, with authentication, watches and faults."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import structlog
from aiohttp import web
from multidict import CIMultiDict

from simcluster.apiserver import errors
from simcluster.apiserver.connections import HttpServer, InFlight, make_room_for_connections
from simcluster.apiserver.discovery_endpoints import TEXT_TYPE, DiscoveryEndpoints
from simcluster.apiserver.endpoints import Endpoints, check_verb
from simcluster.apiserver.health import health_report, is_health_path
from simcluster.apiserver.list_options import is_set
from simcluster.apiserver.messages import Answer, ApiRequest, error_answer
from simcluster.apiserver.paths import Review, Target, parse_path, without_watch_prefix
from simcluster.apiserver.read_endpoints import Reader
from simcluster.apiserver.request_metrics import RequestMetrics
from simcluster.apiserver.response_encoding import (
    common_headers,
    compressed,
    styled,
    warning_values,
    wishes_of,
)
from simcluster.apiserver.timeouts import check_timeout
from simcluster.auth.access import Access, AccessOptions
from simcluster.auth.impersonation import impersonated
from simcluster.auth.users import User
from simcluster.faults.disturbance import as_of_before, cut_short, disturb_stream
from simcluster.faults.endpoints import FAULTS_PATH, FaultEndpoints
from simcluster.faults.faults import FaultRule, Faults
from simcluster.kinds.resources import CONNECTIONS
from simcluster.ports import reserved_port
from simcluster.store.registry import Registry
from simcluster.store.store import Backup
from simcluster.store.watch import WatcherRegistry

MAX_BODY_BYTES = 3 * 1024 * 1024
BODY_TIMEOUT_S = 60.0
_AUDIT_ID_LENGTH = 64
_MAX_LINE_BYTES = 1 << 20  # of a request line; selectors may be long
_MAX_PORT = 65_535
_LOOPBACK = ("127.", "localhost", "::1")
_LOOPBACK_OF_UNSPECIFIED = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared only

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class ServerOptions(AccessOptions):
    """The address and the limits of the API server, besides who has access.

    Args:
        listen: ``HOST:PORT``; port 0 takes a free one.
        cert_file: PEM certificate (with its chain); given together with ``key_file`` it turns TLS
            on. The written kubeconfig trusts it, unless ``ca_file`` is given.
        key_file: PEM key of ``cert_file``.
        max_pending_frames: watch events that may wait for a slow client before the watch is closed.
        max_connections: requests on connections beyond this number are answered 429.
        max_in_flight: requests beyond this number, watches aside, are answered 429.
        sends_bookmarks: send a bookmark each minute and before the end of a watch. A real API
            server sends none about a kind that does not change until etcd reports its progress, by
            default every 10 minutes. The end of the initial events is marked in any case.
        faults_over_http: serve the fault injection of tests under ``/stowage/faults``.
    """

    listen: str = "127.0.0.1:0"
    cert_file: str | Path | None = None
    key_file: str | Path | None = None
    max_pending_frames: int = 10_000
    max_connections: int = 4096
    max_in_flight: int = 600
    sends_bookmarks: bool = True
    faults_over_http: bool = False

    def address(self) -> tuple[str, int]:
        """Host and port.

        Raises:
            ValueError: ``listen`` is malformed.
        """
        host, _, port = self.listen.rpartition(":")
        # The event loop would take a larger number modulo 65536.
        if not (port.isascii() and port.isdigit() and int(port) <= _MAX_PORT):
            raise ValueError(f"listen: {self.listen!r} is not HOST:PORT")
        return host.strip("[]"), int(port)

    def tls(self) -> ssl.SSLContext | None:
        """The context of the listening socket; ``None`` for plain HTTP.

        Raises:
            ValueError: a file is missing, or cannot be used.
        """
        if self.cert_file is None and self.key_file is None:
            return None
        if self.cert_file is None or self.key_file is None:
            raise ValueError(
                "a TLS certificate and its private key belong together; one is missing"
            )
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.cert_file, self.key_file)
        except OSError as error:
            why = f"{self.cert_file} and {self.key_file}: expected a PEM certificate and its key"
            raise ValueError(f"{why}; {error}") from error
        return context


class ApiServer:
    """Serves a registry over HTTP.

    Args:
        registry: the objects.
        options: address and limits.
        faults: injected faults.

    Attributes:
        on_restored: called when the store was set back to a backup.
        on_request: called with each request before it is handled; for tests.
    """

    def __init__(self, registry: Registry, options: ServerOptions, faults: Faults) -> None:
        self.watchers = WatcherRegistry(registry.store, options.sends_bookmarks)
        self.faults = faults
        self.access = Access(options, registry.store, registry.clock)
        self._registry = registry
        self._store = registry.store
        self._options = options
        self._endpoints = Endpoints(registry, self.access)
        self._request_metrics = RequestMetrics()
        self._discovery = DiscoveryEndpoints(
            registry.catalog,
            lambda: urlsplit(self.url).netloc,
            self._request_metrics.exposition,
        )
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
        self.on_restored: Callable[[], Awaitable[None]] = _do_nothing
        self.on_request: Callable[[web.BaseRequest], None] | None = None
        self._http: HttpServer | None = None
        self._runner: web.ServerRunner | None = None
        self._tls = options.tls()
        self._host, self._port = options.address()

    @property
    def url(self) -> str:
        """The address of the server; an unspecified host becomes the loopback."""
        scheme = "https" if self._tls else "http"
        host = _LOOPBACK_OF_UNSPECIFIED.get(self._host, self._host)
        name = f"[{host}]" if ":" in host else host
        return f"{scheme}://{name}:{self._port}"

    async def start(self) -> None:
        """Listen; a free port that port 0 takes is kept through restarts."""
        self._http = HttpServer(
            self._serve,
            make_room_for_connections(self._options.max_connections),
            request_factory=_make_request,
            handler_cancellation=True,
            access_log=None,
            max_line_size=_MAX_LINE_BYTES,
        )
        self._runner = web.ServerRunner(self._http, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(
            self._runner,
            self._host,
            self._port,
            ssl_context=self._tls,
            reuse_address=True,
            backlog=1024,
        )
        await site.start()
        if not self._options.token and not self._host.startswith(_LOOPBACK):
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
        """Close the listening socket and every connection, and listen again after a while.

        The port stays reserved meanwhile.
        """
        await self.stop()
        with reserved_port(self._host, self._port):
            await asyncio.sleep(seconds)
            await self.start()

    def forget_history(self) -> None:
        """Make every watch and page that starts in the past answer 410."""
        self._store.forget_history()

    def back_up(self) -> Backup:
        """All objects as they are now."""
        return self._store.back_up()

    async def restore(self, backup: Backup, away_s: float = 0.0, bump: int = 0) -> None:
        """Stop, set the store back to a backup (:meth:`Store.restore`), and listen again."""
        await self.stop()
        with reserved_port(self._host, self._port):
            self._store.restore(backup, bump)
            await self.on_restored()
            await asyncio.sleep(away_s)
            await self.start()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.on_request is not None:
            self.on_request(request)
        response = await self._serve_uncounted(request)
        self._request_metrics.count(request.method, response.status)
        return response

    async def _serve_uncounted(self, request: web.BaseRequest) -> web.StreamResponse:
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
            status, text = health_report(path, request.query, excluded)
            return await _response(request, Answer(status, text.encode(), content_type=TEXT_TYPE))
        user = self.access.authenticate(request.headers.get("Authorization", ""))
        if "Impersonate-User" in request.headers or "Impersonate-Group" in request.headers:
            user = impersonated(
                user,
                _text(request.headers.get("Impersonate-User", "")),
                list(map(_text, request.headers.getall("Impersonate-Group", []))),
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
        method, headers = request.method, request.headers
        if not (watches or _is_long_running(request, target)):
            check_timeout(request.query)
        if isinstance(target, Target) and target.resource.custom is not None:
            # The handler of custom resources goes by verbs; HEAD has the verbs of GET.
            method = "GET" if method == "HEAD" else method
            target = target if method == "GET" else _with_namespace(target)
        api_request = ApiRequest(
            method,
            path if target else request.path,
            request.query,
            _content_type(request) if method == "PATCH" or request.can_read_body else "",
            headers.get("Accept", ""),
            await _body(request) if target and method != "GET" else b"",
            user,
            _text(headers.get("User-Agent", "")),
            "upgrade" in headers.get("Connection", "").lower(),
            headers.get("If-None-Match", ""),
        )
        if target is None:
            return await _response(request, self._discovery.answer(api_request))
        if method == "GET" and isinstance(target, Target) and not target.subresource:
            return await self._reader.read(request, api_request, target, watches)
        if watches:
            raise errors.method_not_allowed()
        if method == "DELETE" and isinstance(target, Target) and not target.name:
            check_verb(method, target)
            page = await self._endpoints.delete_collection(api_request, target)
            return await self._reader.send_list(request, page, api_request, target.resource)
        return await _response(request, self._endpoints.handle(api_request, target))


def _is_long_running(request: web.BaseRequest, target: Target | Review | None) -> bool:
    if not isinstance(target, Target):
        return False
    return is_set(request.query.get("watch")) or target.subresource in CONNECTIONS


def _with_namespace(target: Target) -> Target | None:
    """The target of a write; ``None`` if it lacks the namespace of its kind."""
    return None if target.resource.namespaced and target.namespace is None else target


async def _do_nothing() -> None:
    """Nobody follows restores."""


async def _body(request: web.BaseRequest) -> bytes:
    """The body of a request.

    Raises:
        ApiError: 413, it is too large; 408, the rest of it does not arrive.
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
    """A request; its answers carry its audit id and do not name the HTTP library."""

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
    # Priority and fairness come after authentication.
    common = common_headers(is_classified=answer.status != HTTPStatus.UNAUTHORIZED)
    headers = CIMultiDict({**common, **answer.headers})
    if answer.retry_after_s:
        headers["Retry-After"] = str(answer.retry_after_s)
    for value in warning_values(answer.warnings):
        headers.add("Warning", value)
    if answer.status == HTTPStatus.NO_CONTENT:
        return web.Response(status=answer.status, headers=headers)
    body, headers["Content-Type"] = answer.body, answer.content_type
    if answer.content_type == TEXT_TYPE:
        headers["X-Content-Type-Options"] = "nosniff"
    if answer.content_type == "application/json" and body:
        wishes = wishes_of(request.headers, request.query)
        body, headers["Content-Type"] = styled(body, wishes)
        body, further = await compressed(body, wishes)
        headers.update(further)
    return web.Response(body=body, status=answer.status, headers=headers)


def _content_type(request: web.BaseRequest) -> str:
    """The media type of a body, without parameters; empty if the request names none."""
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _text(header: str) -> str:
    """A header's value, in which bytes that are no UTF-8 arrive as surrogates."""
    return header.encode(errors="surrogateescape").decode(errors="replace")


def _too_many_requests() -> web.Response:
    """429 for a request beyond the limits."""
    return web.Response(
        status=429,
        text="Too many requests, please try again later.\n",
        headers={"Retry-After": "1", "X-Content-Type-Options": "nosniff"},
    )
