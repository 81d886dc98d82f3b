"""Timestamps and durations, in nanoseconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from datetime import timezone as fixed_zone
from functools import lru_cache
from zoneinfo import ZoneInfo

from stowage.cel.errors import CelRuntimeError
from stowage.cel.values.numbers import INT_MAX, INT_MIN

SECOND = 1_000_000_000
_MIN_SECONDS, _MAX_SECONDS = -62135596800, 253402300799
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(
    r"(\d{4}-\d{2}-\d{2})T(\d{1,2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:Z|([+-])(\d{2}):(\d{2}))",
    re.ASCII,
)
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_DURATION_PART = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A duration of `nanos`, which fits 64 bits."""

    nanos: int

    def __str__(self) -> str:
        whole, fraction = divmod(abs(self.nanos), SECOND)
        sign = "-" if self.nanos < 0 else ""
        decimals = f".{fraction:09d}".rstrip("0") if fraction else ""
        return f"{sign}{whole}{decimals}s"


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time, `nanos` since 1970, in the years 1 to 9999."""

    nanos: int

    def __str__(self) -> str:
        seconds, fraction = divmod(self.nanos, SECOND)
        text = (_EPOCH + timedelta(seconds=seconds)).strftime("%m-%dT%H:%M:%S")
        year = (_EPOCH + timedelta(seconds=seconds)).year
        decimals = f".{fraction:09d}".rstrip("0") if fraction else ""
        return f"{year:04d}-{text}{decimals}Z"

    def in_zone(self, name: str) -> datetime:
        """Return the local time in a zone: a name or an offset like ``-02:30``.

        Raises:
            CelRuntimeError: there is no such zone.
        """
        seconds = self.nanos // SECOND
        try:
            return (_EPOCH + timedelta(seconds=seconds)).astimezone(_zone(name))
        except OverflowError:
            raise CelRuntimeError("timestamp overflow") from None


def duration_of(nanos: int) -> Duration:
    """Make a duration; fails beyond 64 bits."""
    if not INT_MIN <= nanos <= INT_MAX:
        raise CelRuntimeError("duration overflow")
    return Duration(nanos)


def timestamp_of(nanos: int) -> Timestamp:
    """Make a timestamp; fails beyond the years 1 to 9999."""
    if not _MIN_SECONDS <= nanos // SECOND <= _MAX_SECONDS:
        raise CelRuntimeError("timestamp overflow")
    return Timestamp(nanos)


def parse_duration(text: str) -> Duration:
    """Parse ``1h30m``, ``1.5s``, ``-10ms`` (``time.ParseDuration`` of Go)."""
    if len(text) > 1000 or not _DURATION.fullmatch(text):
        raise CelRuntimeError("type conversion error from 'string' to 'google.protobuf.Duration'")
    nanos = 0
    for whole, fraction, unit in _DURATION_PART.findall(text):
        factor = _UNITS[unit]
        nanos += int(whole or "0") * factor
        if fraction:
            nanos += int(fraction) * factor // 10 ** len(fraction)
    return duration_of(-nanos if text.startswith("-") else nanos)


def parse_timestamp(text: str) -> Timestamp:
    """Parse a timestamp in the format of RFC 3339."""
    match = _RFC3339.fullmatch(text)
    error = CelRuntimeError("type conversion error from 'string' to 'google.protobuf.Timestamp'")
    if match is None:
        raise error
    day, hour, minute, second, fraction, sign, offset_hour, offset_minute = match.groups()
    try:
        start = datetime.fromisoformat(f"{day}T{int(hour):02d}:{minute}:{second}+00:00")
    except ValueError:
        raise error from None
    if offset_hour and (int(offset_hour) > 24 or int(offset_minute) > 60):
        raise error
    seconds = (start - _EPOCH) // timedelta(seconds=1)
    if sign:
        offset = int(offset_hour) * 3600 + int(offset_minute) * 60
        seconds += offset if sign == "-" else -offset
    return timestamp_of(seconds * SECOND + int((fraction or "0")[:9].ljust(9, "0")))


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    if name in ("", "UTC", "Local"):
        return UTC
    try:
        if ":" not in name:
            return ZoneInfo(name)
        hours, _, minutes = name.partition(":")
        offset = int(hours) * 60
        offset += -int(minutes) if name.startswith("-") else int(minutes)
        return fixed_zone(timedelta(minutes=offset))
    except (ValueError, OSError, KeyError):
        raise CelRuntimeError(f"unknown time zone {name}") from None
