"""Log lines about a server that does not answer: one for each cause and minute.

During an outage every reflector, Kopf and the leader election repeat their requests. Each of them
notes its failures and answers in the `OutageLog` of the server, and logs them only at level debug.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import aiohttp
import structlog

from stowage.operator import clock
from stowage.operator.client.api_error import ApiError

REPEAT_AFTER_S = 60.0
"""The same cause is logged again after this time."""

NO_ANSWER_IN_TIME = "no answer in time"
CONNECTION_CLOSED = "the connection was closed"

log = structlog.get_logger("stowage.operator.client.outage_log")


class OutageLog:
    """Logs the connection failures of one server, and that it answers again.

    Args:
        server: Host and port, for the lines.
        monotonic: Returns monotonic seconds.
    """

    def __init__(self, server: str, monotonic: Callable[[], float] = clock.monotonic) -> None:
        self._server = server
        self._monotonic = monotonic
        self._logged_at: dict[str, float] = {}
        self._num_suppressed: dict[str, int] = {}
        self._failing_since: float | None = None
        self._has_logged = False

    @property
    def is_failing(self) -> bool:
        """Whether no request has been answered since the last failure."""
        return self._failing_since is not None

    def note_failure(self, error: Exception) -> None:
        """A request failed; logged unless the same cause was logged within the last minute."""
        if isinstance(error.__cause__, ApiError):
            return  # this process refused to send the request, see `GatedBody`
        cause, now = plain_message(error), self._monotonic()
        if self._failing_since is None:
            self._failing_since = now
        if now - self._logged_at.get(cause, -REPEAT_AFTER_S) < REPEAT_AFTER_S:
            self._num_suppressed[cause] = self._num_suppressed.get(cause, 0) + 1
            return
        self._logged_at = {
            each: at for each, at in self._logged_at.items() if now - at < REPEAT_AFTER_S
        }
        self._logged_at[cause] = now
        self._has_logged = True
        suppressed = self._num_suppressed.pop(cause, 0)
        log.warning(
            "the API server does not answer",
            server=self._server,
            error=cause,
            **({"suppressed": suppressed} if suppressed else {}),
        )

    def note_answer(self) -> None:
        """The server answered; logged once after each logged failure."""
        if self._failing_since is None:
            return
        failing_s = self._monotonic() - self._failing_since
        self._failing_since = None
        if self._has_logged:
            self._has_logged = False
            log.info(
                "the API server answers again",
                server=self._server,
                seconds=round(failing_s, 1),
                suppressed=sum(self._num_suppressed.values()),
            )
            self._num_suppressed.clear()


class SilentOutages(OutageLog):
    """Logs nothing: a command that ends with its first failure says itself what failed."""

    def __init__(self) -> None:
        super().__init__("")

    def note_failure(self, error: Exception) -> None:
        """Log nothing."""

    def note_answer(self) -> None:
        """Log nothing."""


def plain_message(error: BaseException) -> str:
    """What went wrong with a request, in a few words and without object representations."""
    if isinstance(error, ApiError):
        return str(error)
    if isinstance(error, TimeoutError):
        return NO_ANSWER_IN_TIME
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the server's certificate was refused: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return f"TLS failed: {error.os_error}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"the name {error.host} was not resolved"
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError):
        return CONNECTION_CLOSED
    if isinstance(error, OSError) and error.errno in (errno.ECONNRESET, errno.EPIPE):
        return CONNECTION_CLOSED
    if isinstance(error, aiohttp.ClientOSError | ConnectionError) and error.errno:
        return os.strerror(error.errno).lower()
    return str(error) or type(error).__name__
