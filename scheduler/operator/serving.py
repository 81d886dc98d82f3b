"""Health, metrics and configuration over HTTP, as kube-scheduler serves them on --secure-port."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import structlog
from aiohttp import web

from scheduler.operator.metrics import Metrics

METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

log = structlog.get_logger("scheduler.operator.serving")

Check = Callable[[], bool]
"""Whether something is well."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingOptions:
    """Where to listen.

    Attributes:
        bind_address: Of the interface.
        port: 0 lets the system choose.
        tls_cert_file: PEM certificate (chain); with it the server speaks HTTPS, else plain HTTP.
        tls_private_key_file: PEM key; None if it is in `tls_cert_file`.
    """

    bind_address: str = "0.0.0.0"  # noqa: S104 - kubelet and Prometheus come from outside the pod
    port: int = 10259
    tls_cert_file: str | None = None
    tls_private_key_file: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Checks:
    """Named checks behind the health endpoints.

    Attributes:
        ready_notes: Lines that /readyz shows when asked to be verbose; they fail nothing.
    """

    live: Mapping[str, Check]
    ready: Mapping[str, Check]
    ready_notes: Callable[[], Sequence[str]] = tuple


class Server:
    """Answers /healthz, /livez, /readyz, /metrics and /configz.

    Attributes:
        port: The port in use, once started.
    """

    def __init__(
        self,
        options: ServingOptions,
        metrics: Metrics,
        checks: Checks,
        configz: Callable[[], Mapping[str, object]],
    ) -> None:
        self.port = options.port
        self._options = options
        self._metrics = metrics
        self._checks = checks
        self._configz = configz
        app = web.Application()
        app.add_routes(
            [
                web.get("/healthz", self._live),
                web.get("/livez", self._live),
                web.get("/readyz", self._ready),
                web.get("/metrics", self._expose_metrics),
                web.get("/configz", self._show_config),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None)

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: the address is taken, or a TLS file cannot be read.
        """
        await self._runner.setup()
        tls = _tls_context(self._options)
        site = web.TCPSite(
            self._runner, self._options.bind_address, self._options.port, ssl_context=tls
        )
        await site.start()
        self.port = self._runner.addresses[0][1]
        log.info("serving", port=self.port, tls=tls is not None)

    async def stop(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _live(self, request: web.Request) -> web.Response:
        return _report(request, self._checks.live)

    async def _ready(self, request: web.Request) -> web.Response:
        return _report(request, self._checks.ready, self._checks.ready_notes())

    async def _expose_metrics(self, _request: web.Request) -> web.Response:
        return web.Response(
            body=self._metrics.exposition(), headers={"Content-Type": METRICS_CONTENT_TYPE}
        )

    async def _show_config(self, _request: web.Request) -> web.Response:
        body = msgspec.json.encode(self._configz())
        return web.Response(body=body, content_type="application/json")


def _tls_context(options: ServingOptions) -> ssl.SSLContext | None:
    if options.tls_cert_file is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(options.tls_cert_file, options.tls_private_key_file)
    return context


def _report(
    request: web.Request, checks: Mapping[str, Check], notes: Sequence[str] = ()
) -> web.Response:
    """200 ``ok`` if all checks hold, else 500; with ``?verbose`` a line for each."""
    results = {name: check() for name, check in checks.items()}
    is_well = all(results.values())
    if is_well and "verbose" not in request.query:
        return web.Response(text="ok")
    lines = [f"[+]{name} ok" if held else f"[-]{name} failed" for name, held in results.items()]
    lines += notes
    endpoint = request.path.strip("/")
    lines.append(f"{endpoint} check {'passed' if is_well else 'failed'}\n")
    return web.Response(status=200 if is_well else 500, text="\n".join(lines))
