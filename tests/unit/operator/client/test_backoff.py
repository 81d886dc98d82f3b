"""Backoff delays, and which requests are retried."""

from __future__ import annotations

import aiohttp
import pytest
from structlog.testing import CapturingLogger

from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff, is_worth_retrying, retry, retry_log
from tests.support.fake_api import FakeTime, no_jitter


def test_delays_double_up_to_the_maximum_and_start_over_after_a_reset() -> None:
    backoff = Backoff(no_jitter, initial_s=1.0, max_s=5.0)
    assert [backoff.next_delay() for _ in range(4)] == [1.0, 2.0, 4.0, 5.0]
    backoff.reset()
    assert backoff.next_delay() == 1.0


def test_jitter_shortens_a_delay_by_up_to_half() -> None:
    assert Backoff(lambda: 0.0, initial_s=1.0).next_delay() == 0.5


def test_retry_after_lengthens_a_delay_but_never_shortens_it() -> None:
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
def test_only_transient_errors_are_retried(error: Exception, want: bool) -> None:
    assert is_worth_retrying(error) is want


class _Request:
    def __init__(self, *outcomes: Exception | str) -> None:
        self.outcomes = list(outcomes)

    async def __call__(self) -> str:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


async def test_a_request_is_retried_until_it_succeeds() -> None:
    time = FakeTime()
    request = _Request(ApiError(503), TimeoutError(), "done")
    assert await retry(request, Backoff(no_jitter, initial_s=1.0), time.sleep) == "done"
    assert len(time.slept) == 2


async def test_a_request_that_is_refused_is_not_retried() -> None:
    time = FakeTime()
    with pytest.raises(ApiError, match="404"):
        await retry(_Request(ApiError(404)), Backoff(no_jitter), time.sleep)
    assert time.slept == []


async def test_the_last_error_is_raised_after_the_maximum_number_of_attempts() -> None:
    time = FakeTime()
    request = _Request(ApiError(500), ApiError(502), ApiError(503), "too late")
    with pytest.raises(ApiError, match="503"):
        await retry(request, Backoff(no_jitter), time.sleep, max_attempts=3)
    assert request.outcomes == ["too late"]


@pytest.mark.parametrize(
    ("error", "level"),
    [(ApiError(503), "info"), (ValueError(), "info"), (TimeoutError(), "debug")],
    ids=repr,
)
def test_a_lost_answer_has_a_line_of_its_own_so_the_repetition_is_for_debugging(
    error: Exception, level: str
) -> None:
    log = CapturingLogger()
    retry_log(log, error)("writing again")
    assert [(call.method_name, call.args) for call in log.calls] == [(level, ("writing again",))]
