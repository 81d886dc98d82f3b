"""`ApiError`: the exception for a refusal by the API server."""

from __future__ import annotations

import math

import msgspec

MAX_RETRY_AFTER_S = 30.0
"""Upper limit of Retry-After: an API server asks for seconds, a broken proxy for hours."""

NOT_FOUND = "NotFound"
"""Reason of a 404 about the object; a 404 about a path that is not served yet has none."""

_NOT_ACTED_ON = frozenset({400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429})
"""Status codes with which the API server refuses a request without acting on it."""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """``metav1.Status.details``, reduced to the retry delay."""

    retry_after_seconds: float | None = None


class StatusBody(msgspec.Struct, frozen=True):
    """A ``metav1.Status``, reduced to the fields that `ApiError` needs."""

    reason: str = ""
    message: str = ""
    code: int = 0
    details: StatusDetails | None = None


class ApiError(Exception):
    """The API server refused a request.

    Attributes:
        status: HTTP status code, or the ``code`` of an ERROR watch event.
        reason: Machine-readable reason, e.g. ``Conflict``, ``Expired``.
        message: Human-readable message.
        retry_after: Seconds that the server asks the client to wait, if any.
    """

    def __init__(
        self, status: int, reason: str = "", message: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    def __str__(self) -> str:
        known = f"{self.status} {self.reason}".strip()
        return f"{known}: {self.message}" if self.message else known

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in (408, 425, 429) or self.status >= 500 or 200 <= self.status < 400

    @property
    def is_object_not_found(self) -> bool:
        """Whether the object does not exist; a 404 without this reason is about the path."""
        return self.status == 404 and self.reason == NOT_FOUND

    @property
    def may_have_been_done(self) -> bool:
        """Whether the server may have carried out the request nevertheless.

        A load balancer or proxy that stops waiting for the server answers itself: with 408, 502,
        a page instead of a Status, or a redirect.
        """
        return self.status > 0 and self.status not in _NOT_ACTED_ON


_STATUS_DECODER = msgspec.json.Decoder(StatusBody)


def error_from_answer(status: int, body: bytes, retry_after_header: str | None) -> ApiError:
    """Make an `ApiError`; a body that is not a ``metav1.Status`` becomes the message."""
    try:
        answer = _STATUS_DECODER.decode(body)
    except msgspec.DecodeError:
        answer = StatusBody(message=body[:300].decode("utf-8", "replace").strip())
    retry_after = _seconds(retry_after_header)
    if retry_after is None and answer.details is not None:
        retry_after = _bounded_delay(answer.details.retry_after_seconds)
    return ApiError(status, answer.reason, answer.message, retry_after)


def _seconds(header: str | None) -> float | None:
    """Read Retry-After in its numeric form; Kubernetes never sends the date form."""
    try:
        return None if header is None else _bounded_delay(float(header))
    except ValueError:
        return None


def _bounded_delay(seconds: float | None) -> float | None:
    if seconds is None or math.isnan(seconds) or seconds < 0:
        return None
    return min(seconds, MAX_RETRY_AFTER_S)
