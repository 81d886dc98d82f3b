"""The token bucket admits a number of requests per second, and a burst."""

from __future__ import annotations

import asyncio

import pytest

from stowage.operator.client.rate_limit import TokenBucket, token_bucket
from stowage.operator.clock import Clock
from tests.support.fake_api import FakeTime


async def _times(bucket: TokenBucket, time: FakeTime, number: int) -> list[float]:
    times = []
    for _ in range(number):
        await bucket.wait()
        times.append(round(time.now - 1000.0, 3))
    return times


async def test_requests_without_a_pause_are_admitted_at_the_rate() -> None:
    time = FakeTime()
    bucket = TokenBucket(10, 1, time.clock)
    assert await _times(bucket, time, 4) == [0.0, 0.1, 0.2, 0.3]


async def test_a_burst_is_admitted_at_once_after_a_pause() -> None:
    time = FakeTime()
    bucket = TokenBucket(10, 3, time.clock)
    assert await _times(bucket, time, 5) == [0.0, 0.0, 0.0, 0.1, 0.2]
    time.now += 60.0
    assert [at - 60.2 for at in await _times(bucket, time, 3)] == [0.0, 0.0, 0.0]


async def test_concurrent_requests_share_the_rate() -> None:
    time, waits = FakeTime(), []

    async def sleep(seconds: float) -> None:
        waits.append(round(seconds, 3))

    bucket = TokenBucket(10, 1, Clock(monotonic=time.monotonic, sleep=sleep))
    await asyncio.gather(*(bucket.wait() for _ in range(4)))
    assert waits == [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("qps", "times"), [(5.0, [0.0, 0.0, 0.2, 0.4]), (0.5, [0.0, 0.0, 2.0, 4.0])]
)
async def test_a_limit_has_the_rate_and_the_burst_that_were_asked_for(
    qps: float, times: list[float]
) -> None:
    time = FakeTime()
    bucket = token_bucket(qps, 2, time.clock)
    assert bucket is not None
    assert await _times(bucket, time, 4) == times


@pytest.mark.parametrize("qps", [0.0, -1.0])
def test_a_rate_of_zero_or_less_is_no_limit(qps: float) -> None:
    assert token_bucket(qps, 10, FakeTime().clock) is None
