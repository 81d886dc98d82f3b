"""A refusal of the API server, as an exception."""

from __future__ import annotations

import math

import msgspec

MAX_RETRY_AFTER_S = 30.0
"""The server asks for some seconds; what asks for hours is broken, or is no API server."""

NOT_FOUND = "NotFound"
"""The reason of a 404 that is about the object; a path that is not served yet has another."""

_NOT_ACTED_ON = frozenset({400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429})
"""Refusals of the API server itself, before or instead of doing what was asked."""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """The part of ``metav1.Status.details`` that says when to come back."""

    retry_after_seconds: float | None = None


class StatusBody(msgspec.Struct, frozen=True):
    """A ``metav1.Status`` as far as its readers here care."""

    reason: str = ""
    message: str = ""
    code: int = 0
    details: StatusDetails | None = None


class ApiError(Exception):
    """The API server answered, and the answer is no.

    Attributes:
        status: HTTP status code; of an ERROR watch event, its ``code``.
        reason: Machine-readable, e.g. ``Conflict``, ``Expired``.
        message: For people.
        retry_after: Seconds the server asks to wait, if it does.
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
        return f"{self.status} {self.reason}: {self.message}".strip()

    @property
    def is_transient(self) -> bool:
        """Whether the same request may well succeed later."""
        return self.status in (408, 425, 429) or self.status >= 500 or 200 <= self.status < 400

    @property
    def is_object_not_found(self) -> bool:
        """Whether it says that the object is not there; else perhaps the path is not served."""
        return self.status == 404 and self.reason == NOT_FOUND

    @property
    def may_have_been_done(self) -> bool:
        """Whether what was asked for may have been done nevertheless.

        What stands in between (a load balancer, a proxy) gives up on answers, and says so in its
        own words: 408, 502, a page in place of a Status, a redirect.
        """
        return self.status > 0 and self.status not in _NOT_ACTED_ON


_STATUS_DECODER = msgspec.json.Decoder(StatusBody)


def error_from_answer(status: int, body: bytes, retry_after_header: str | None) -> ApiError:
    """Make an `ApiError` from a refusal; a body that is no Status is quoted as the message."""
    try:
        answer = _STATUS_DECODER.decode(body)
    except msgspec.DecodeError:
        answer = StatusBody(message=body[:300].decode("utf-8", "replace").strip())
    retry_after = _seconds(retry_after_header)
    if retry_after is None and answer.details is not None:
        retry_after = _within_reason(answer.details.retry_after_seconds)
    return ApiError(status, answer.reason, answer.message, retry_after)


def _seconds(header: str | None) -> float | None:
    """Retry-After in its numeric form; Kubernetes never sends the date form."""
    try:
        return None if header is None else _within_reason(float(header))
    except ValueError:
        return None


def _within_reason(seconds: float | None) -> float | None:
    if seconds is None or math.isnan(seconds) or seconds < 0:
        return None
    return min(seconds, MAX_RETRY_AFTER_S)
