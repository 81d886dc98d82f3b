"""Health, metrics, configuration and state over HTTPS, as kube-scheduler serves them."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import msgspec
import structlog
from aiohttp import web

from stowage.operator.serving.connection_limits import ConnectionLimits, LimitedConnection
from stowage.operator.serving.delegated_access import AccessOptions, DelegatedAccess
from stowage.operator.serving.health import Checks, health_routes
from stowage.operator.serving.serving_certificate import CertificateFiles, ServingCertificate
from stowage.operator.serving.tls_options import TlsOptions

METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
CERTIFICATE_CHECK_S = 10.0
HANDSHAKE_LIMIT_S = 10.0
LINGER_S = 2.0
"""How long the body of a request is read that nobody wants."""

log = structlog.get_logger("stowage.operator.serving.server")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingOptions:
    """Where to listen, with which certificate, and to whom to answer.

    Attributes:
        bind_address: Of the interface.
        port: 0 lets the system choose.
        tls_cert_file: PEM certificate (chain); None for a self-signed one.
        tls_private_key_file: PEM key; None if it is in `tls_cert_file`.
        cert_dir: Where a self-signed certificate is kept; None keeps it in memory.
        access: Whom to ask the API server about.
        tls: What connections have to be like.
    """

    bind_address: str = "0.0.0.0"  # noqa: S104 - kubelet and Prometheus come from outside the pod
    port: int = 10259
    tls_cert_file: str | None = None
    tls_private_key_file: str | None = None
    cert_dir: str | None = None
    access: AccessOptions = field(default_factory=AccessOptions)
    tls: TlsOptions = field(default_factory=TlsOptions)


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to be seen.

    Attributes:
        metrics: The text of /metrics.
        resource_metrics: The text of /metrics/resources; empty while another replica leads.
        configz: The configuration in force; JSON-able.
        dump: The engine's state; JSON-able.
        checks: Behind the health endpoints.
    """

    metrics: Callable[[], bytes]
    resource_metrics: Callable[[], bytes]
    configz: Callable[[], Mapping[str, object]]
    dump: Callable[[], Mapping[str, Any]]
    checks: Checks


class Server:
    """The endpoints.

    Attributes:
        port: The port in use, once started.
        certificate: What is served, once started.
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
        self._following: asyncio.Task[None] | None = None
        self.app = web.Application(middlewares=[self._guard])
        self.app.add_routes(health_routes(content.checks))
        self.app.add_routes(
            [
                web.get("/metrics", self._show_metrics),
                web.get("/metrics/resources", self._show_resource_metrics),
                web.get("/configz", self._show_configuration),
                web.get("/debug/cache", self._show_cache),
                web.get("/debug/queue", self._show_queue),
                web.get("/version", _show_version),
            ]
        )
        self._runner = web.AppRunner(self.app, access_log=None, lingering_time=LINGER_S)

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: the address is taken, or a TLS file cannot be read or used.
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
            options.bind_address,
            options.port,
            ssl=self.certificate.context,
            ssl_handshake_timeout=HANDSHAKE_LIMIT_S,
        )
        self.port = self._listening.sockets[0].getsockname()[1]
        self._following = asyncio.create_task(self._follow_certificate(), name="certificate")
        log.info("serving", port=self.port)

    async def stop(self) -> None:
        """Stop listening."""
        if self._following is not None:
            self._following.cancel()
        if self._listening is not None:
            self._listening.close()
        await self._runner.cleanup()

    def _connection(self) -> LimitedConnection:
        server = cast("web.Server", self._runner.server)  # set up before anybody can connect
        return LimitedConnection(server(), self._limits)

    async def _follow_certificate(self) -> None:
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
