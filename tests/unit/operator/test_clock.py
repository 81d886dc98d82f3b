"""Times of day are in UTC."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from stowage.operator.clock import Clock


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A host whose local time is nine hours ahead."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_east")
def test_monotonic_seconds_become_times_of_day_in_utc() -> None:
    clock = Clock(monotonic=lambda: 100.0, unix_nanoseconds=lambda: 1_764_504_000_000_000_000)
    assert time.localtime(0).tm_hour == 9
    time_of_day = clock.times_of_day()
    assert time_of_day(100.0) == "2025-11-30T12:00:00.000000Z"
    assert time_of_day(70.5) == "2025-11-30T11:59:30.500000Z"
