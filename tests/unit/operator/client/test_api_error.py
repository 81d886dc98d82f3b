"""Refusals are parsed from any response body."""

from __future__ import annotations

import pytest

from stowage.operator.client.api_error import MAX_RETRY_AFTER_S, ApiError, error_from_answer


def test_a_status_is_taken_apart() -> None:
    body = b'{"kind":"Status","status":"Failure","reason":"Conflict","message":"taken","code":409}'
    error = error_from_answer(409, body, None)
    assert (error.status, error.reason, error.message) == (409, "Conflict", "taken")
    assert str(error) == "409 Conflict: taken"


def test_plain_text_becomes_the_message() -> None:
    assert error_from_answer(404, b"404 page not found\n", None).message == "404 page not found"


def test_the_header_says_when_to_come_back() -> None:
    assert error_from_answer(429, b"{}", "7").retry_after == 7.0


def test_the_details_say_when_to_come_back_if_the_header_does_not() -> None:
    body = b'{"details":{"retryAfterSeconds":3}}'
    assert error_from_answer(429, body, None).retry_after == 3.0
    assert error_from_answer(429, body, "Wed, 21 Oct 2026 07:28:00 GMT").retry_after == 3.0


@pytest.mark.parametrize("nonsense", ["nan", "-5", "abc", ""])
def test_a_time_that_makes_no_sense_is_none(nonsense: str) -> None:
    assert error_from_answer(429, b"{}", nonsense).retry_after is None


@pytest.mark.parametrize("seconds", ["inf", "86400", "1e400"])
def test_nobody_is_made_to_wait_for_ever(seconds: str) -> None:
    assert error_from_answer(429, b"{}", seconds).retry_after == MAX_RETRY_AFTER_S
    body = b'{"details":{"retryAfterSeconds":1e300}}'
    assert error_from_answer(503, body, None).retry_after == MAX_RETRY_AFTER_S


def test_only_a_404_with_its_reason_says_that_the_object_is_gone() -> None:
    assert ApiError(404, "NotFound").is_object_not_found
    assert not error_from_answer(404, b"404 page not found\n", None).is_object_not_found
