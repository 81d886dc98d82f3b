"""Where the API server is and how to prove who we are, as `kubernetes.aio.config` reads it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from ssl import SSLContext
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import structlog
from kubernetes.aio import config as kubernetes_config_module
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.client.rest import RESTClientObject

from stowage.operator.client.timeouts import Timeouts
from stowage.operator.serving.tls_options import without_strict_x509

# Typed as a whole, but not inside: strict checking would refuse every call.
kubernetes_config: Any = kubernetes_config_module

USER_AGENT = "stowage"
CREDENTIALS_CHECK_S = 60.0
"""How often credentials are looked at; `kubernetes.aio.config` knows which have run out."""

READ_BUFFER_BYTES = 2**18

DEFAULT_TIMEOUTS = Timeouts()

log = structlog.get_logger("stowage.operator.client.connection")


class Connector(aiohttp.TCPConnector):
    """Connections to one API server, of which those that nobody uses can be dropped."""

    def use_tls(self, tls: SSLContext | bool) -> None:
        """Make new connections that way; those there are stay."""
        self._ssl = tls

    def drop_idle(self) -> None:
        """Close the connections that wait for a request.

        Where one is silent because packets vanish, the others are most likely as dead, and each
        would cost a request its whole time limit.
        """
        for connections in self._conns.values():
            for protocol, _ in connections:
                protocol.close()


class Connection:
    """An API server, the TLS context to reach it and credentials that stay fresh.

    Use `connect` to make one. `session` is shared by everything that talks to the server;
    `new_session` makes another over the same connector for somebody who closes his own.
    """

    def __init__(
        self,
        kubeconfig: str | None,
        context: str | None,
        master: str | None = None,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
    ) -> None:
        self.timeouts = timeouts
        self._kubeconfig = kubeconfig
        self._context = context
        self._master = master
        self._configuration = Configuration()
        self._loader: Any = None
        self._connector: Connector | None = None
        self._certificates: tuple[bytes, ...] = ()
        self._session: aiohttp.ClientSession | None = None
        self._sessions: list[aiohttp.ClientSession] = []
        self._headers: dict[str, str] = {"User-Agent": USER_AGENT}
        self._reloading = asyncio.Lock()
        self._generation = 0

    async def open(self) -> None:
        """Read the configuration and open the session.

        Raises:
            ConfigException: no usable kubeconfig, and not running in a cluster.
        """
        await self._load()
        self._certificates = self._read_certificates()
        self._connector = Connector(limit=0, ssl=self._make_tls(), keepalive_timeout=60)
        self._session = self.new_session()

    @property
    def server(self) -> str:
        """The server's base URL, without a trailing slash."""
        return str(self._configuration.host).rstrip("/")

    @property
    def host(self) -> str:
        """The server's host and port, without scheme and path; a label of metrics."""
        return urlsplit(self.server).netloc.rpartition("@")[2]

    @property
    def session(self) -> aiohttp.ClientSession:
        """The shared session; its requests carry the credentials."""
        if self._session is None:
            raise RuntimeError("Connection.session is there only after Connection.open()")
        return self._session

    @property
    def generation(self) -> int:
        """How often the credentials were reloaded, so that one 401 reloads them once."""
        return self._generation

    def new_session(
        self, middlewares: Sequence[aiohttp.ClientMiddlewareType] = ()
    ) -> aiohttp.ClientSession:
        """Another session over the same connector; closing it leaves the connector open."""
        # Drop the sessions their users have closed: Kopf asks for a new one with each login.
        self._sessions = [session for session in self._sessions if not session.closed]
        server_name = self._configuration.tls_server_name
        if server_name:
            middlewares = (*middlewares, _expecting(server_name))
        session = aiohttp.ClientSession(
            connector=self._connector,
            connector_owner=False,
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            middlewares=middlewares,
            proxy=self._configuration.proxy,
            auto_decompress=True,
            read_bufsize=READ_BUFFER_BYTES,
        )
        self._sessions.append(session)
        return session

    def drop_idle(self) -> None:
        """Let the next requests open connections of their own."""
        if self._connector is not None:
            self._connector.drop_idle()

    async def reload(self, seen_generation: int) -> None:
        """Read the configuration anew after a 401, unless somebody did so meanwhile.

        If it cannot be read (a token file is being replaced), what we have stays.
        """
        async with self._reloading:
            if seen_generation != self._generation:
                return
            try:
                await self._load()
            except Exception as error:
                # Plugins fail in ways of their own, and the next 401 tries again.
                log.warning("credentials not reloaded", error=repr(error))
            else:
                self._generation += 1

    async def keep_fresh(self) -> None:
        """Renew tokens before they run out; runs until cancelled.

        A kubeconfig's loader runs an exec plugin or asks an OIDC provider only when their answer
        is about to expire, and rereads a token file each time; in a cluster the token file is
        reread each minute. So are certificates that are in files of their own.
        """
        while True:
            await asyncio.sleep(CREDENTIALS_CHECK_S)
            try:
                await self.renew()
            except Exception as error:
                # Plugins fail in ways of their own; what we have may still be good for a while.
                log.warning("credentials not renewed", error=repr(error))

    async def renew(self) -> None:
        """Look at the credentials once, renewing what is about to run out."""
        if self._loader is not None:
            await self._loader.load_and_set(self._configuration)
            if self._master:
                self._configuration.host = self._master
        await self._apply_credentials()
        self._renew_certificates()

    async def close(self) -> None:
        """Close every session and the connector."""
        for session in self._sessions:
            await session.close()
        if self._connector is not None:
            await self._connector.close()

    async def _load(self) -> None:
        if self._kubeconfig or self._context or _default_kubeconfig_exists():
            self._loader = await kubernetes_config.load_kube_config(
                config_file=self._kubeconfig,
                context=self._context,
                client_configuration=self._configuration,
                persist_config=False,
            )
        elif not self._master or _is_in_cluster():
            kubernetes_config.load_incluster_config(client_configuration=self._configuration)
        if self._master:
            self._configuration.host = self._master
        await self._apply_credentials()

    def _make_tls(self) -> SSLContext | bool:
        if not self.server.startswith("https"):
            return True
        # Made the way the library makes it: CA, client certificate, verification.
        return without_strict_x509(RESTClientObject(self._configuration).ssl_context)

    def _renew_certificates(self) -> None:
        """Trust another CA, and show another certificate, once the files say so.

        Raises:
            OSError: A file cannot be read, or key and certificate do not belong together (yet).
        """
        found = self._read_certificates()
        if self._connector is not None and found != self._certificates:
            self._connector.use_tls(self._make_tls())
            self._certificates = found
            log.info("certificates reloaded")

    def _read_certificates(self) -> tuple[bytes, ...]:
        """What is in the files."""
        told = self._configuration
        paths = filter(None, (told.ssl_ca_cert, told.cert_file, told.key_file))
        return tuple(Path(path).read_bytes() for path in paths)

    async def _apply_credentials(self) -> None:
        """Put the present token into the default headers of every session."""
        token = await self._configuration.get_api_key_with_prefix(
            "BearerToken", alias="authorization"
        )
        if not token:
            return
        self._headers["Authorization"] = token
        for session in self._sessions:
            session.headers["Authorization"] = token


def _expecting(server_name: str) -> aiohttp.ClientMiddlewareType:
    """Have the server's certificate checked against the kubeconfig's ``tls-server-name``."""

    async def expect(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        request.server_hostname = server_name
        return await handler(request)

    return expect


def _default_kubeconfig_exists() -> bool:
    paths = kubernetes_config.KUBE_CONFIG_DEFAULT_LOCATION.split(":")
    return any(path and Path(path).expanduser().exists() for path in paths)


def _is_in_cluster() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ


async def connect(
    kubeconfig: str | None = None,
    context: str | None = None,
    master: str | None = None,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
) -> Connection:
    """Open a connection by kubeconfig (given, ``$KUBECONFIG`` or ``~/.kube/config``) or in-cluster.

    `master` replaces the server's address; without any configuration it is enough by itself.

    Raises:
        ConfigException: no usable kubeconfig, and not running in a cluster.
    """
    connection = Connection(kubeconfig, context, master, timeouts)
    await connection.open()
    return connection
