"""The parameters of questions."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from stowage.console.answers.answer import InvalidQuestion, unix_seconds

MAX_CHARACTERS = 512
_MAX_UNIX_S = 253_402_300_800.0


class Parameters:
    """The query of a URL; each parameter at most once.

    Args:
        query: Name -> value.
        known: The names that are known; any other one is refused.

    Raises:
        InvalidQuestion: A parameter is unknown or too long.
    """

    def __init__(self, query: Mapping[str, str], known: Collection[str]) -> None:
        unknown = sorted(query.keys() - set(known))
        if unknown:
            expected = ", ".join(sorted(known)) or "no parameter"
            raise InvalidQuestion(unknown[0][:80], f"unknown parameter (expected {expected})")
        self._query = query

    def text(self, name: str, default: str = "") -> str:
        """A text."""
        value = self._query.get(name, default)
        if len(value) > MAX_CHARACTERS:
            raise InvalidQuestion(name, f"expected at most {MAX_CHARACTERS} characters")
        return value

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number."""
        text = self._query.get(name, "")
        if not text:
            return default
        is_number = text.isascii() and text.isdigit() and len(text) < 10
        if not is_number or not least <= int(text) <= most:
            raise InvalidQuestion(name, f"expected {least} to {most}, got {text[:40]!r}")
        return int(text)

    def time(self, name: str = "at") -> float | None:
        """A time: RFC 3339, or seconds since 1970; None without it."""
        return parse_time(self.text(name), name)


def parse_time(text: str, name: str) -> float | None:
    """The time of a text; None for an empty one.

    Raises:
        InvalidQuestion: It is no time.
    """
    if not text:
        return None
    unix_s = unix_seconds(text)
    if unix_s is None:
        try:
            unix_s = float(text)
        except ValueError:
            expected = "expected a time such as 2026-05-01T12:00:00Z"
            raise InvalidQuestion(name, f"{expected}, got {text[:40]!r}") from None
    if not abs(unix_s) < _MAX_UNIX_S:
        raise InvalidQuestion(name, f"expected a time before the year 10000, got {text[:40]!r}")
    return unix_s
