"""A refusal of the API server, as an exception."""

from __future__ import annotations

import msgspec


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
        return self.status == 429 or self.status >= 500


_STATUS_DECODER = msgspec.json.Decoder(StatusBody)


def error_from_answer(status: int, body: bytes, retry_after_header: str | None) -> ApiError:
    """Make an `ApiError` from a refusal; a body that is no Status is quoted as the message."""
    try:
        answer = _STATUS_DECODER.decode(body)
    except msgspec.DecodeError:
        answer = StatusBody(message=body[:300].decode("utf-8", "replace").strip())
    retry_after = _seconds(retry_after_header)
    if retry_after is None and answer.details is not None:
        retry_after = answer.details.retry_after_seconds
    return ApiError(status, answer.reason, answer.message, retry_after)


def _seconds(header: str | None) -> float | None:
    """Retry-After in its numeric form; Kubernetes never sends the date form."""
    try:
        return None if header is None else float(header)
    except ValueError:
        return None
