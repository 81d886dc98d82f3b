"""The connection to the API server: address, TLS and credentials from `kubernetes.aio.config`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from ssl import SSLContext
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import structlog
from kubernetes.aio import config as kubernetes_config_module
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.client.rest import RESTClientObject

from stowage.operator.client.direct_writes import KEEPALIVE_S, DirectWrites
from stowage.operator.client.kube_context import misshapen_part
from stowage.operator.client.outage_log import OutageLog, SilentOutages, plain_message
from stowage.operator.client.proxies import UnsupportedProxyError, checked, proxy_of
from stowage.operator.client.timeouts import Timeouts
from stowage.operator.client.tls import without_strict_x509

# The package has no type annotations inside: strict checking would refuse every call.
kubernetes_config: Any = kubernetes_config_module

USER_AGENT = "stowage"
CREDENTIALS_CHECK_S = 60.0
"""Seconds between two checks of the credentials."""

READ_BUFFER_BYTES = 2**18

DEFAULT_TIMEOUTS = Timeouts()

log = structlog.get_logger("stowage.operator.client.connection")


class Connector(aiohttp.TCPConnector):
    """Connection pool to one API server whose idle connections can be closed."""

    def use_tls(self, tls: SSLContext | bool) -> None:
        """Use this TLS context for new connections; open ones stay as they are."""
        self._ssl = tls

    def drop_idle(self) -> None:
        """Close the connections without a request.

        If one connection is dead because packets are lost, the others are most likely dead too,
        and each would cost a request its whole time limit.
        """
        for connections in self._conns.values():
            for protocol, _ in connections:
                protocol.close()


class Connection:
    """An API server's address, TLS context and credentials, and HTTP sessions that use them.

    Use `connect` to make one. All parts of the shell share `session`; `new_session` makes
    another session over the same connections for Kopf, which closes its session itself.

    Attributes:
        timeouts: Timeouts of requests.
        outages: Every sender of requests notes failures and answers there; see `log_outages`.
    """

    def __init__(
        self,
        kubeconfig: str | None,
        master: str | None = None,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        context: str | None = None,
        middlewares: Sequence[aiohttp.ClientMiddlewareType] = (),
    ) -> None:
        self.timeouts = timeouts
        self._middlewares = middlewares
        self.outages: OutageLog = SilentOutages()
        self._kubeconfig = kubeconfig
        self._context = context
        self._master = master
        self._configuration = Configuration()
        self._loader: Any = None
        self._connector: Connector | None = None
        self._proxy: str | None = None
        self._certificates: tuple[bytes, ...] = ()
        self._session: aiohttp.ClientSession | None = None
        self._sessions: list[aiohttp.ClientSession] = []
        self._headers: dict[str, str] = {"User-Agent": USER_AGENT}
        self._direct_writes: DirectWrites | None = None
        self._reloading = asyncio.Lock()
        self._generation = 0
        self._num_sessions = 0

    async def open(self) -> None:
        """Read the configuration and open the session.

        Raises:
            ConfigException: there is no usable kubeconfig, and the process is not in a cluster.
        """
        try:
            await self._load()
            self._check_server()
            self._proxy = self._find_proxy()
            self._certificates = self._read_certificates()
            tls = self._make_tls()
        except kubernetes_config.ConfigException as error:
            raise kubernetes_config.ConfigException(self._explanation(str(error))) from error
        except Exception as error:
            # The library raises any exception about a kubeconfig that is malformed.
            raised = " ".join(f"{type(error).__name__}: {error}".split())
            text = self._explanation(self._misshapen_part() or raised)
            raise kubernetes_config.ConfigException(text) from error
        self._connector = Connector(limit=0, ssl=tls, keepalive_timeout=KEEPALIVE_S)
        self._session = self.new_session()
        self._direct_writes = self._make_direct_writes()

    def log_outages(self, monotonic: Callable[[], float]) -> None:
        """Log from now on that the server does not answer; call it before clients are made."""
        self.outages = OutageLog(self.host, monotonic)

    @property
    def server(self) -> str:
        """The server's base URL, without a trailing slash."""
        return str(self._configuration.host).rstrip("/")

    @property
    def host(self) -> str:
        """The server's host and port, a label of metrics."""
        return urlsplit(self.server).netloc.rpartition("@")[2]

    @property
    def session(self) -> aiohttp.ClientSession:
        """The shared session, whose requests carry the credentials."""
        if self._session is None:
            raise RuntimeError("call Connection.open() before Connection.session")
        return self._session

    @property
    def direct_writes(self) -> DirectWrites | None:
        """Sends writes without the session; None if the session must send all requests."""
        return self._direct_writes

    @property
    def num_sessions(self) -> int:
        """Number of sessions made since the start; they share the connection pool of the first."""
        return self._num_sessions

    @property
    def generation(self) -> int:
        """Number of reloads of the credentials, so that concurrent 401s reload them once."""
        return self._generation

    def new_session(
        self, middlewares: Sequence[aiohttp.ClientMiddlewareType] = ()
    ) -> aiohttp.ClientSession:
        """Make another session over the same connector; closing it leaves the connector open."""
        # Kopf asks for a new session with each login and closes the old one.
        self._sessions = [session for session in self._sessions if not session.closed]
        middlewares = (*self._middlewares, *middlewares)
        server_name = self._configuration.tls_server_name
        if server_name:
            middlewares = (*middlewares, _verify_server_name(server_name))
        session = aiohttp.ClientSession(
            connector=self._connector,
            connector_owner=False,
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            middlewares=middlewares,
            proxy=self._proxy,
            read_bufsize=READ_BUFFER_BYTES,
        )
        self._sessions.append(session)
        self._num_sessions += 1
        return session

    def drop_idle(self) -> None:
        """Close the connections without a request, so that the next requests open new ones."""
        if self._connector is not None:
            self._connector.drop_idle()
        if self._direct_writes is not None:
            self._direct_writes.drop_idle()

    async def reload(self, seen_generation: int) -> None:
        """Read the configuration again after a 401, unless another request has done so.

        If it cannot be read, e.g. while a token file is replaced, the old credentials stay.

        Args:
            seen_generation: The `generation` with which the refused request was sent.
        """
        async with self._reloading:
            if seen_generation != self._generation:
                return
            try:
                await self._load()
            except Exception as error:
                # Credential plugins raise any exception; the next 401 tries again.
                log.warning("credentials not reloaded", error=plain_message(error))
            else:
                self._generation += 1

    async def keep_fresh(self) -> None:
        """Renew tokens and certificates before they expire; runs until cancelled.

        The kubeconfig loader runs an exec plugin or asks an OIDC provider only if their answer is
        about to expire. It reads token files each time; in a cluster it reads the token file each
        minute.
        """
        while True:
            await asyncio.sleep(CREDENTIALS_CHECK_S)
            try:
                await self.renew()
            except Exception as error:
                # Credential plugins raise any exception; the old credentials may still be valid.
                log.warning("credentials not renewed", error=plain_message(error))

    async def renew(self) -> None:
        """Renew the credentials that are about to expire."""
        if self._loader is not None:
            await self._loader.load_and_set(self._configuration)
            if self._master:
                self._configuration.host = self._master
        await self._apply_credentials()
        self._renew_certificates()

    async def close(self) -> None:
        """Close every session and the connector."""
        if self._direct_writes is not None:
            self._direct_writes.close()
        for session in self._sessions:
            await session.close()
        if self._connector is not None:
            await self._connector.close()

    def _make_direct_writes(self) -> DirectWrites | None:
        configuration = self._configuration
        if self._connector is None or self._middlewares or self._proxy:
            return None
        if configuration.tls_server_name:
            return None
        try:
            return DirectWrites(self._connector, self.server, self._headers, READ_BUFFER_BYTES)
        except ValueError:
            return None  # the session says what is wrong with the headers

    def _check_server(self) -> None:
        """Check the server's address.

        Raises:
            ConfigException: it is no URL.
        """
        url = urlsplit(self.server)
        if url.scheme not in ("http", "https") or not url.hostname:
            text = f"server is {self.server!r}, expected https://HOST:PORT"
            raise kubernetes_config.ConfigException(text)

    def _find_proxy(self) -> str | None:
        """The proxy of the kubeconfig or, as for client-go, of the environment.

        Raises:
            ConfigException: it is of another scheme than http and https.
        """
        configured: str | None = self._configuration.proxy
        try:
            return checked(configured) if configured else proxy_of(self.server)
        except UnsupportedProxyError as error:
            raise kubernetes_config.ConfigException(str(error)) from error

    def _explanation(self, problem: str) -> str:
        """What is wrong with the configuration, with the file that it was read from."""
        if self._kubeconfig:
            return f"the kubeconfig {self._kubeconfig} cannot be used: {problem}"
        if _default_kubeconfig_exists():
            paths = kubernetes_config.KUBE_CONFIG_DEFAULT_LOCATION
            return f"the kubeconfig {paths} cannot be used: {problem}"
        nothing = "there is no kubeconfig (--kubeconfig, $KUBECONFIG or ~/.kube/config), and "
        if _is_in_cluster():
            return f"{nothing}the service account of this pod cannot be used: {problem}"
        return f"{nothing}this is not a pod of a cluster"

    def _misshapen_part(self) -> str:
        """What is no kubeconfig in the files; empty if there is none or they are kubeconfigs."""
        default = str(kubernetes_config.KUBE_CONFIG_DEFAULT_LOCATION)
        return misshapen_part(self._kubeconfig or default)

    async def _load(self) -> None:
        if self._kubeconfig or _default_kubeconfig_exists():
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
        # The library's own context has the CA, the client certificate and the verification mode.
        return without_strict_x509(RESTClientObject(self._configuration).ssl_context)

    def _renew_certificates(self) -> None:
        """Use another CA and client certificate once their files have changed.

        Raises:
            OSError: a file cannot be read, or key and certificate do not match (yet).
        """
        found = self._read_certificates()
        if self._connector is not None and found != self._certificates:
            self._connector.use_tls(self._make_tls())
            self._certificates = found
            log.info("certificates reloaded")

    def _read_certificates(self) -> tuple[bytes, ...]:
        configuration = self._configuration
        paths = filter(
            None, (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
        )
        return tuple(Path(path).read_bytes() for path in paths)

    async def _apply_credentials(self) -> None:
        """Put the current token into the default headers of every session."""
        token = await self._configuration.get_api_key_with_prefix(
            "BearerToken", alias="authorization"
        )
        if not token:
            return
        self._headers["Authorization"] = token
        for session in self._sessions:
            session.headers["Authorization"] = token
        if self._direct_writes is not None:
            self._direct_writes.close()
            self._direct_writes = self._make_direct_writes()


def _verify_server_name(server_name: str) -> aiohttp.ClientMiddlewareType:
    """Verify the server's certificate against the kubeconfig's ``tls-server-name``."""

    async def verify(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        request.server_hostname = server_name
        return await handler(request)

    return verify


def _default_kubeconfig_exists() -> bool:
    paths = kubernetes_config.KUBE_CONFIG_DEFAULT_LOCATION.split(":")
    return any(path and Path(path).expanduser().exists() for path in paths)


def _is_in_cluster() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ


async def connect(
    kubeconfig: str | None = None,
    master: str | None = None,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    context: str | None = None,
    middlewares: Sequence[aiohttp.ClientMiddlewareType] = (),
) -> Connection:
    """Open a connection to the API server.

    Args:
        kubeconfig: Path; None for ``$KUBECONFIG``, ``~/.kube/config`` or in-cluster configuration.
        master: Address that replaces the configured one; works without a kubeconfig.
        timeouts: Timeouts of requests.
        context: Context of the kubeconfig; None for its current one.
        middlewares: Middlewares of every session.

    Raises:
        ConfigException: there is no usable kubeconfig, and the process is not in a cluster.
    """
    connection = Connection(kubeconfig, master, timeouts, context, middlewares)
    await connection.open()
    return connection
