"""The HTTP client of an extender: session, TLS, time limit and error texts."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path

import aiohttp

from stowage.api.config.errors import without_credentials
from stowage.api.config.loading import Extender
from stowage.api.config.types import ExtenderTLSConfig
from stowage.operator.client.gated_client import GatedBody
from stowage.operator.client.proxies import proxy_of
from stowage.operator.client.tls import without_strict_x509
from stowage.operator.extenders.failure_log import FailureLog

DEFAULT_TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 256 * 2**20
"""15,000 complete nodes take about 150 MB; kube-scheduler has no limit."""
#: No compression: a small compressed answer could expand without bound.
_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
_PLAIN = ("", "identity")


class ExtenderError(Exception):
    """A call of an extender failed.

    Attributes:
        may_have_acted: Whether the request may have reached the extender.
    """

    def __init__(self, text: str, *, may_have_acted: bool = True) -> None:
        super().__init__(text)
        self.may_have_acted = may_have_acted


class ExtenderClient:
    """Sends requests to one extender.

    Args:
        config: The extender's configuration.
        max_answer_bytes: Maximum length of an answer.

    Attributes:
        num_failures: Number of requests without an answer or with an invalid one.
        failure_log: Logs what the failures of this extender led to.

    Raises:
        OSError: a certificate, key or CA cannot be read or used, or the environment names a proxy
            that is neither of HTTP nor of HTTPS.
    """

    def __init__(self, config: Extender, max_answer_bytes: int = MAX_ANSWER_BYTES) -> None:
        self.config = config
        self.num_failures = 0
        self.failure_log = FailureLog(extender=self.name)
        self._max_answer_bytes = max_answer_bytes
        self._url = config.url_prefix.rstrip("/")
        self._timeout_s = config.http_timeout or DEFAULT_TIMEOUT_S
        self._server_name = (config.tls_config.server_name if config.tls_config else "") or None
        self._tls = tls_context(config)
        self._proxy = proxy_of(self._url)
        self._opened: aiohttp.ClientSession | None = None

    @property
    def name(self) -> str:
        """The configured URL without credentials, as in ``HTTPExtender.Name``."""
        return without_credentials(self.config.url_prefix)

    async def send(
        self, verb: str, body: bytes, may_send: Callable[[], bool] | None = None
    ) -> bytes:
        """POST to a verb and return the answer.

        Args:
            verb: Path that is appended to the configured URL.
            body: JSON.
            may_send: Checked immediately before the bytes are sent; None sends always.

        Raises:
            ExtenderError: `may_send` is false, the extender cannot be reached, does not answer in
                time, answers with another code than 200, or its answer is too long.
        """
        url = f"{self._url}/{verb}"
        shown = without_credentials(url)
        data = body if may_send is None else GatedBody(body, may_send)
        try:
            # A redirect could send the pod to a server that nobody configured.
            async with self._session.post(
                url,
                data=data,
                headers=_HEADERS,
                server_hostname=self._server_name,
                allow_redirects=False,
            ) as response:
                if response.status != 200:
                    text = f"failed {verb} with extender at URL {shown}, code {response.status}"
                    raise self.failure(text)
                encoding = response.headers.get("Content-Encoding", "").lower()
                if encoding not in _PLAIN:
                    text = f'an answer encoded as "{encoding}", which was not asked for'
                    raise self.failure(f'extender "{shown}": {text}')
                return await self._bounded(response, shown)
        except TimeoutError as error:
            limit = self._timeout_s
            raise self.failure(f'extender "{shown}": no answer within {limit:g} s') from error
        except (aiohttp.ClientError, OSError) as error:
            reached = not isinstance(error, aiohttp.ClientConnectorError)
            raise self.failure(f'extender "{shown}": {error}', may_have_acted=reached) from error

    def failure(self, text: str, *, may_have_acted: bool = True) -> ExtenderError:
        """Count a failure and return the error to raise."""
        self.num_failures += 1
        return ExtenderError(text, may_have_acted=may_have_acted)

    async def _bounded(self, response: aiohttp.ClientResponse, url: str) -> bytes:
        """Read the body of an answer.

        Raises:
            ExtenderError: the body is too long; the rest is not read.
        """
        parts: list[bytes] = []
        left = self._max_answer_bytes
        async for part in response.content.iter_any():
            left -= len(part)
            if left < 0:
                limit = self._max_answer_bytes
                raise self.failure(f'extender "{url}": an answer of more than {limit:,} bytes')
            parts.append(part)
        return b"".join(parts)

    async def close(self) -> None:
        """Close the session."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._opened is None:
            self._opened = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=self._tls),
                timeout=aiohttp.ClientTimeout(total=self._timeout_s),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                proxy=self._proxy,
            )
        return self._opened


def tls_context(config: Extender) -> ssl.SSLContext | bool:
    """The TLS context for an extender (``makeTransport`` of v1.36).

    ``enableHTTPS`` without a CA trusts any server. Inline data takes precedence over files, as in
    client-go. Returns True (aiohttp's default) for plain HTTP, because making a context takes time.

    Raises:
        OSError: a certificate, key or CA cannot be read or used.
    """
    is_plain = not config.url_prefix.lower().startswith("https:")
    if is_plain and config.tls_config is None and not config.enable_https:
        return True
    tls = config.tls_config or ExtenderTLSConfig()
    context = ssl.create_default_context(
        cafile=None if tls.ca_data else tls.ca_file or None,
        cadata=tls.ca_data.decode("ascii", "replace") or None,
    )
    has_ca = bool(tls.ca_file or tls.ca_data)
    if tls.insecure or (config.enable_https and not has_ca):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_file or tls.cert_data:
        _load_certificate(context, tls)
    return without_strict_x509(context)


def _load_certificate(context: ssl.SSLContext, tls: ExtenderTLSConfig) -> None:
    """Load a client certificate; OpenSSL reads files only, so data goes through private files."""
    with tempfile.TemporaryDirectory(prefix="stowage-") as directory:
        paths = []
        for name, data, path in (
            ("cert", tls.cert_data, tls.cert_file),
            ("key", tls.key_data, tls.key_file),
        ):
            paths.append(_write_private(Path(directory, name), data) if data else path)
        context.load_cert_chain(*paths)


def _write_private(path: Path, data: bytes) -> str:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    return str(path)
