"""Parts of durations and timestamps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from stowage.cel.signatures.functions import Overload, overload
from stowage.cel.values.times import SECOND, Duration, Timestamp

_NANOS_IN_PART: Mapping[str, int] = {
    "getHours": 3600 * SECOND,
    "getMinutes": 60 * SECOND,
    "getSeconds": SECOND,
    "getMilliseconds": SECOND // 1000,
}
_PARTS: Mapping[str, Callable[[datetime], int]] = {
    "getFullYear": lambda local: local.year,
    "getMonth": lambda local: local.month - 1,
    "getDayOfYear": lambda local: local.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda local: local.day - 1,
    "getDate": lambda local: local.day,
    "getDayOfWeek": lambda local: local.isoweekday() % 7,
    "getHours": lambda local: local.hour,
    "getMinutes": lambda local: local.minute,
    "getSeconds": lambda local: local.second,
}


def _whole(nanos: int) -> Callable[[Duration], int]:
    return lambda value: abs(value.nanos) // nanos * (-1 if value.nanos < 0 else 1)


def _part(read: Callable[[datetime], int]) -> Callable[..., int]:
    def part(value: Timestamp, zone: str = "UTC") -> int:
        return read(value.in_zone(zone))

    return part


def _milliseconds(value: Timestamp, zone: str = "UTC") -> int:
    value.in_zone(zone)
    return value.nanos % SECOND // 1_000_000


def _timestamp_part(name: str, implementation: Callable[..., int]) -> list[Overload]:
    return [
        overload(f"timestamp.{name}() -> int", implementation),
        overload(f"timestamp.{name}(string) -> int", implementation),
    ]


FUNCTIONS: list[Overload] = [
    *(
        overload(f"duration.{name}() -> int", _whole(nanos))
        for name, nanos in _NANOS_IN_PART.items()
    ),
    *(each for name, read in _PARTS.items() for each in _timestamp_part(name, _part(read))),
    *_timestamp_part("getMilliseconds", _milliseconds),
]
