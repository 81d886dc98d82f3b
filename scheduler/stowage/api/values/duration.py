"""Durations in the notation of metav1.Duration: ``15s``, ``1m30s``, ``500ms``."""

import re
from decimal import Decimal

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_UNIT = r"(?:ns|us|µs|μs|ms|s|m|h)"
_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_DURATION = re.compile(rf"([+-]?)((?:{_NUMBER}{_UNIT})+)")
_PART = re.compile(rf"({_NUMBER})({_UNIT})")


class Duration(float):
    """A duration in seconds; decoded from and encoded to Go's notation."""

    __slots__ = ()

    def __str__(self) -> str:
        """Go's ``time.Duration.String``: ``1m30s``, ``500ms``, ``0s``."""
        return format_duration(self)


def parse_duration(text: str) -> Duration:
    """Parse Go's notation (``time.ParseDuration``).

    Raises:
        ValueError: ``text`` is not a duration.

    Examples:
        >>> float(parse_duration("1m30s"))
        90.0
    """
    if text == "0":
        return Duration(0)
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f'"{text}" is not a duration (expected e.g. 15s or 1m30s)')
    nanoseconds = sum(
        int(Decimal(number) * _NANOSECONDS[unit]) for number, unit in _PART.findall(match[2])
    )
    return Duration((-nanoseconds if match[1] == "-" else nanoseconds) / 1e9)


def format_duration(seconds: float) -> str:
    """Format seconds in Go's notation.

    Examples:
        >>> format_duration(90), format_duration(0.5), format_duration(3600)
        ('1m30s', '500ms', '1h0m0s')
    """
    nanoseconds = round(abs(seconds) * 1e9)
    sign = "-" if seconds < 0 else ""
    if nanoseconds == 0:
        return "0s"
    if nanoseconds < 10**9:
        for unit in ("ms", "us"):
            if nanoseconds >= _NANOSECONDS[unit]:
                return f"{sign}{_decimal(nanoseconds, _NANOSECONDS[unit])}{unit}"
        return f"{sign}{nanoseconds}ns"
    minutes, rest = divmod(nanoseconds, _NANOSECONDS["m"])
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, 10**9)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def _decimal(nanoseconds: int, unit: int) -> str:
    whole, rest = divmod(nanoseconds, unit)
    if rest == 0:
        return str(whole)
    num_digits = len(str(unit)) - 1
    return f"{whole}.{rest:0{num_digits}d}".rstrip("0")
