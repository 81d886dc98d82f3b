"""Backoff delays, and which requests are retried."""

from __future__ import annotations

import aiohttp
import pytest

from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff, is_worth_retrying, retry
from tests.support.fake_api import FakeTime, no_jitter


def test_delays_double_up_to_the_limit_and_start_over_after_a_success() -> None:
    backoff = Backoff(no_jitter, initial_s=1.0, max_s=5.0)
    assert [backoff.next_delay() for _ in range(4)] == [1.0, 2.0, 4.0, 5.0]
    backoff.reset()
    assert backoff.next_delay() == 1.0


def test_jitter_takes_up_to_half_of_a_delay() -> None:
    assert Backoff(lambda: 0.0, initial_s=1.0).next_delay() == 0.5


def test_the_server_may_ask_for_a_longer_delay_but_not_for_a_shorter() -> None:
    backoff = Backoff(no_jitter, initial_s=2.0)
    assert backoff.next_delay(ApiError(429, retry_after=9.0)) == 9.0
    backoff.reset()
    assert backoff.next_delay(ApiError(429, retry_after=1.0)) == 2.0


@pytest.mark.parametrize(
    ("error", "want"),
    [
        (ApiError(429), True),
        (ApiError(500), True),
        (ApiError(503), True),
        (ApiError(404), False),
        (ApiError(409), False),
        (TimeoutError(), True),
        (aiohttp.ServerDisconnectedError(), True),
        (ValueError(), False),
    ],
    ids=repr,
)
def test_only_what_time_may_heal_is_worth_retrying(error: Exception, want: bool) -> None:
    assert is_worth_retrying(error) is want


class _Request:
    def __init__(self, *outcomes: Exception | str) -> None:
        self.outcomes = list(outcomes)

    async def __call__(self) -> str:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


async def test_a_request_is_repeated_until_it_is_answered() -> None:
    time = FakeTime()
    request = _Request(ApiError(503), TimeoutError(), "done")
    assert await retry(request, Backoff(no_jitter, initial_s=1.0), time.sleep) == "done"
    assert len(time.slept) == 2


async def test_a_refusal_is_final() -> None:
    time = FakeTime()
    with pytest.raises(ApiError, match="404"):
        await retry(_Request(ApiError(404)), Backoff(no_jitter), time.sleep)
    assert time.slept == []


async def test_the_last_error_is_raised_when_the_attempts_are_used_up() -> None:
    time = FakeTime()
    request = _Request(ApiError(500), ApiError(502), ApiError(503), "too late")
    with pytest.raises(ApiError, match="503"):
        await retry(request, Backoff(no_jitter), time.sleep, max_attempts=3)
    assert request.outcomes == ["too late"]
