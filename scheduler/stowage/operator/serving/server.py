"""The HTTPS server of the endpoints."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import msgspec
import structlog
from aiohttp import web

from stowage.operator.clock import Clock
from stowage.operator.decisions.store import DecisionStore
from stowage.operator.metrics.disabled_metrics import DisabledMetrics
from stowage.operator.metrics.health_metrics import HealthMetrics
from stowage.operator.serving.connection_limits import ConnectionLimits, LimitedConnection
from stowage.operator.serving.debug import answer_profile, answer_verbosity
from stowage.operator.serving.decisions import decision_routes
from stowage.operator.serving.delegated_access import AccessOptions, DelegatedAccess
from stowage.operator.serving.health import Checks, health_routes
from stowage.operator.serving.listening_socket import ANY_ADDRESS, listening_socket
from stowage.operator.serving.profile import Profiler
from stowage.operator.serving.serving_certificate import CertificateFiles, ServingCertificate
from stowage.operator.serving.tls_options import TlsOptions
from stowage.operator.serving.zpages import Statusz, as_page, flagz_text

METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
CERTIFICATE_CHECK_S = 10.0
HANDSHAKE_LIMIT_S = 10.0
MAX_BODY_BYTES = 1024
"""The only body that is read is a log level."""
LINGER_S = 2.0
"""How long the server reads the rest of a request that it has answered."""

log = structlog.get_logger("stowage.operator.serving.server")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ServingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the HTTPS server.

    Attributes:
        bind_address: IP address; ``0.0.0.0`` and ``::`` are all addresses of IPv4 and IPv6.
        port: Port; 0 lets the system choose one.
        permit_port_sharing: Whether other processes may listen on the port, too.
        tls_cert_file: PEM certificate (chain); None for a self-signed certificate.
        tls_private_key_file: PEM key; None if it is in `tls_cert_file`.
        cert_dir: Directory of the self-signed certificate; None keeps it in memory.
        access: Options of authentication and authorization.
        tls: TLS versions, cipher suites and client CA.
    """

    bind_address: str = ANY_ADDRESS
    port: int = 10259
    permit_port_sharing: bool = False
    tls_cert_file: str | None = None
    tls_private_key_file: str | None = None
    cert_dir: str | None = None
    access: AccessOptions = msgspec.field(default_factory=AccessOptions)
    tls: TlsOptions = msgspec.field(default_factory=TlsOptions)


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the endpoints.

    Attributes:
        metrics: Returns the text of /metrics.
        resource_metrics: Returns the text of /metrics/resources; empty on standbys.
        configz: Returns the configuration in force as JSON-compatible data.
        dump: Returns the engine's state as JSON-compatible data.
        checks: The checks of the health endpoints.
        decisions: The last decisions.
        flags: The flags of the process with their values, for /flagz.
        is_profiling_enabled: Whether /debug/profile is served at this moment.
        clock: Time, for /statusz.
        disabled_metrics: The metrics that /metrics/slis leaves out.
    """

    metrics: Callable[[], bytes]
    resource_metrics: Callable[[], bytes]
    configz: Callable[[], Mapping[str, object]]
    dump: Callable[[], Mapping[str, Any]]
    checks: Checks
    decisions: DecisionStore
    flags: Mapping[str, str] = msgspec.field(default_factory=dict)
    is_profiling_enabled: Callable[[], bool] = lambda: False
    clock: Clock = Clock()
    disabled_metrics: DisabledMetrics = msgspec.field(default_factory=DisabledMetrics)


class Server:
    """Serves the endpoints.

    Args:
        options: Options of the server.
        content: The content of the endpoints.
        access: Decides who may read them.
        limits: Limits of the connections.

    Attributes:
        port: The port in use after `start`.
        certificate: The certificate in use after `start`.
    """

    certificate: ServingCertificate

    def __init__(
        self,
        options: ServingOptions,
        content: Content,
        access: DelegatedAccess,
        limits: ConnectionLimits | None = None,
    ) -> None:
        self._limits = limits or ConnectionLimits()
        self._listening: asyncio.Server | None = None
        self.port = options.port
        self._options = options
        self._content = content
        self._access = access
        self._reloading: asyncio.Task[None] | None = None
        self.app = web.Application(middlewares=[self._guard], client_max_size=MAX_BODY_BYTES)
        self._slis = HealthMetrics()
        self._profiler = Profiler()
        self.app.add_routes(health_routes(content.checks, self._slis.observe))
        self.app.add_routes(decision_routes(content.decisions))
        self.app.add_routes(
            [
                web.get("/metrics", self._show_metrics),
                web.get("/metrics/resources", self._show_resource_metrics),
                web.get("/metrics/slis", self._show_slis),
                web.get("/statusz", self._show_status),
                web.get("/flagz", self._show_flags),
                web.get("/debug/profile", self._show_profile),
                web.route("*", "/debug/flags/v", answer_verbosity),
                web.get("/configz", self._show_configuration),
                web.get("/debug/cache", self._show_cache),
                web.get("/debug/queue", self._show_queue),
                web.get("/version", _show_version),
            ]
        )
        self._statusz = Statusz(content.clock, _paths(self.app))
        self._runner = web.AppRunner(self.app, access_log=None, lingering_time=LINGER_S)

    async def start(self) -> None:
        """Start to listen.

        Raises:
            OSError: the address cannot be used, or a TLS file cannot be read or used.
        """
        options = self._options
        self.certificate = ServingCertificate(
            _given_files(options),
            Path(options.cert_dir) if options.cert_dir else None,
            options.bind_address,
            options.tls,
        )
        await self._runner.setup()
        self._listening = await asyncio.get_running_loop().create_server(
            self._connection,
            sock=listening_socket(
                options.bind_address, options.port, is_shared=options.permit_port_sharing
            ),
            ssl=self.certificate.context,
            ssl_handshake_timeout=HANDSHAKE_LIMIT_S,
        )
        self.port = self._listening.sockets[0].getsockname()[1]
        self._reloading = asyncio.create_task(self._reload_certificate(), name="certificate")
        log.info("serving", port=self.port)

    async def stop(self) -> None:
        """Stop listening."""
        if self._reloading is not None:
            self._reloading.cancel()
        if self._listening is not None:
            self._listening.close()
        self._profiler.stop()
        await self._runner.cleanup()

    def _connection(self) -> LimitedConnection:
        server = cast("web.Server", self._runner.server)  # set by `AppRunner.setup`
        return LimitedConnection(server(), self._limits)

    async def _reload_certificate(self) -> None:
        while True:
            await asyncio.sleep(CERTIFICATE_CHECK_S)
            self.certificate.reload()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._limits.begun(request.transport)
        try:
            refusal = await self._access.refusal(request)
            return await handler(request) if refusal is None else refusal
        finally:
            self._limits.ended(request.transport)

    async def _show_metrics(self, _request: web.Request) -> web.Response:
        return _as_metrics(self._content.metrics())

    async def _show_resource_metrics(self, _request: web.Request) -> web.Response:
        return _as_metrics(self._content.resource_metrics())

    async def _show_slis(self, _request: web.Request) -> web.Response:
        return _as_metrics(self._content.disabled_metrics.exposition(self._slis))

    async def _show_status(self, request: web.Request) -> web.Response:
        return as_page(request, self._statusz.text())

    async def _show_flags(self, request: web.Request) -> web.Response:
        return as_page(request, flagz_text(self._content.flags))

    async def _show_profile(self, request: web.Request) -> web.Response:
        if not self._content.is_profiling_enabled():
            text = "profiling is off; enableProfiling: true in the configuration enables it\n"
            return web.Response(status=HTTPStatus.NOT_FOUND, text=text)
        return await answer_profile(request, self._profiler)

    async def _show_configuration(self, _request: web.Request) -> web.Response:
        return _as_json(self._content.configz())

    async def _show_cache(self, _request: web.Request) -> web.Response:
        return _as_json({"nodes": self._content.dump().get("nodes")})

    async def _show_queue(self, _request: web.Request) -> web.Response:
        state = self._content.dump()
        return _as_json({part: state[part] for part in state if part != "nodes"})


def _given_files(options: ServingOptions) -> CertificateFiles | None:
    if options.tls_cert_file is None:
        return None
    key = options.tls_private_key_file
    return CertificateFiles(Path(options.tls_cert_file), Path(key) if key else None)


def _as_metrics(body: bytes) -> web.Response:
    return web.Response(body=body, headers={"Content-Type": METRICS_CONTENT_TYPE})


def _as_json(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


def _paths(app: web.Application) -> list[str]:
    return sorted({route.resource.canonical for route in app.router.routes() if route.resource})


async def _show_version(_request: web.Request) -> web.Response:
    version = metadata.version("stowage")
    major, minor, *_ = version.split(".")
    return _as_json(
        {
            "major": major,
            "minor": minor,
            "gitVersion": f"v{version}",
            "pythonVersion": platform.python_version(),
            "platform": f"{platform.system().lower()}/{platform.machine()}",
        }
    )
