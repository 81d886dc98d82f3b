"""Connection failures are logged once for each cause and minute, in plain words."""

from __future__ import annotations

import errno
import ssl
from typing import Any, cast

import aiohttp
import pytest
import structlog
from aiohttp.client_reqrep import ConnectionKey

from stowage.operator.client.api_error import ApiError
from stowage.operator.client.outage_log import OutageLog, plain_message
from tests.support.fake_api import FakeTime

KEY = ConnectionKey("example", 6443, True, True, None, None, None)
REFUSED = aiohttp.ClientConnectorError(KEY, ConnectionRefusedError(errno.ECONNREFUSED, "refused"))
UNKNOWN_NAME = OSError(-2, "Name or service not known")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (REFUSED, "connection refused"),
        (TimeoutError(), "no answer in time"),
        (aiohttp.SocketTimeoutError(), "no answer in time"),
        (aiohttp.ServerDisconnectedError(), "the connection was closed"),
        (aiohttp.ClientPayloadError("Response payload is not"), "the connection was closed"),
        (ConnectionResetError(errno.ECONNRESET, "reset"), "the connection was closed"),
        (aiohttp.ClientConnectorDNSError(KEY, UNKNOWN_NAME), "the name example was not resolved"),
        (
            aiohttp.ClientConnectorCertificateError(KEY, Exception("it has expired")),
            "the server's certificate was refused: it has expired",
        ),
        (
            aiohttp.ClientConnectorSSLError(KEY, ssl.SSLError(1, "wrong version number")),
            "TLS failed: wrong version number",
        ),
        (ApiError(503, "ServiceUnavailable", "busy"), "503 ServiceUnavailable: busy"),
        (ValueError(), "ValueError"),
    ],
)
def test_an_error_is_described_in_plain_words(error: Exception, text: str) -> None:
    assert plain_message(error) == text


class _Outage:
    """An `OutageLog` and its lines."""

    def __init__(self) -> None:
        self.time = FakeTime()
        self.log = OutageLog("example:6443", lambda: self.time.now)
        self.lines: list[Any] = []

    def after(self, seconds: float, error: Exception | None) -> list[Any]:
        """The lines of a failure, or of an answer."""
        self.time.now += seconds
        with structlog.testing.capture_logs() as lines:
            if error is None:
                self.log.note_answer()
            else:
                self.log.note_failure(error)
        return cast("list[Any]", lines)


def test_the_same_cause_is_logged_again_after_a_minute_with_the_number_of_the_others() -> None:
    outage = _Outage()
    (first,) = outage.after(0, REFUSED)
    assert (first["log_level"], first["server"]) == ("warning", "example:6443")
    assert first["error"] == "connection refused"
    assert "suppressed" not in first
    assert outage.after(1, REFUSED) == outage.after(58, REFUSED) == []
    (again,) = outage.after(1, REFUSED)
    assert again["suppressed"] == 2


def test_each_cause_has_its_own_line() -> None:
    outage = _Outage()
    causes = (REFUSED, TimeoutError(), aiohttp.ServerDisconnectedError())
    assert [len(outage.after(1, cause)) for cause in causes] == [1, 1, 1]
    assert [len(outage.after(1, cause)) for cause in causes] == [0, 0, 0]


def test_the_end_of_an_outage_is_logged_once() -> None:
    outage = _Outage()
    assert outage.after(0, None) == []
    outage.after(0, REFUSED)
    outage.after(5, REFUSED)
    (recovery,) = outage.after(10.26, None)
    assert recovery["log_level"] == "info"
    assert recovery["server"] == "example:6443"
    assert (recovery["seconds"], recovery["suppressed"]) == (15.3, 1)
    assert outage.after(1, None) == []


def test_a_connection_that_breaks_every_second_is_logged_once_a_minute() -> None:
    outage = _Outage()
    lines = [
        line for _ in range(300) for error in (REFUSED, None) for line in outage.after(0.5, error)
    ]
    assert len(lines) == 10
    assert sum(line.get("suppressed", 0) for line in lines) == 4 * 59


def test_a_write_that_this_process_does_not_send_is_no_outage() -> None:
    refused = aiohttp.ClientConnectionError()
    refused.__cause__ = ApiError(0, "LeaseNotHeld")
    assert _Outage().after(0, refused) == []
