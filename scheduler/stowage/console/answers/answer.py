"""What all answers have in common."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """Base of answers; JSON has camelCase names."""


class InvalidQuestion(ValueError):  # noqa: N818 - it names the finding
    """A parameter of a question is invalid.

    Attributes:
        field: The parameter.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


def rfc3339(unix_s: float) -> str:
    """A time as text, in UTC with milliseconds.

    Examples:
        >>> rfc3339(0.25)
        '1970-01-01T00:00:00.250Z'
    """
    at = datetime.fromtimestamp(unix_s, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"


def unix_seconds(text: str | None) -> float | None:
    """The time of an RFC 3339 text, in seconds since 1970; None for no or another text.

    Examples:
        >>> unix_seconds("1970-01-01T00:00:01Z"), unix_seconds("soon")
        (1.0, None)
    """
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None
