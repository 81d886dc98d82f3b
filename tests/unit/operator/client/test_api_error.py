"""API errors are parsed from any response body."""

from __future__ import annotations

import pytest

from stowage.operator.client.api_error import MAX_RETRY_AFTER_S, ApiError, error_from_answer


def test_reason_and_message_are_read_from_a_status_object() -> None:
    body = b'{"kind":"Status","status":"Failure","reason":"Conflict","message":"taken","code":409}'
    error = error_from_answer(409, body, None)
    assert (error.status, error.reason, error.message) == (409, "Conflict", "taken")
    assert str(error) == "409 Conflict: taken"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ApiError(403, "Forbidden"), "403 Forbidden"),
        (ApiError(502, message="no upstream"), "502: no upstream"),
        (ApiError(500), "500"),
    ],
)
def test_what_the_server_did_not_say_leaves_no_colon(error: ApiError, text: str) -> None:
    assert str(error) == text


def test_plain_text_becomes_the_message() -> None:
    assert error_from_answer(404, b"404 page not found\n", None).message == "404 page not found"


def test_retry_after_is_read_from_the_header() -> None:
    assert error_from_answer(429, b"{}", "7").retry_after == 7.0


def test_retry_after_is_read_from_the_details_without_a_usable_header() -> None:
    body = b'{"details":{"retryAfterSeconds":3}}'
    assert error_from_answer(429, body, None).retry_after == 3.0
    assert error_from_answer(429, body, "Wed, 21 Oct 2026 07:28:00 GMT").retry_after == 3.0


def test_a_server_may_ask_for_no_delay() -> None:
    assert error_from_answer(429, b'{"details":{"retryAfterSeconds":3}}', "0").retry_after == 0.0


@pytest.mark.parametrize("invalid", ["nan", "-5", "abc", ""])
def test_an_invalid_retry_after_is_ignored(invalid: str) -> None:
    assert error_from_answer(429, b"{}", invalid).retry_after is None


@pytest.mark.parametrize("seconds", ["inf", "86400", "1e400"])
def test_retry_after_is_capped(seconds: str) -> None:
    assert error_from_answer(429, b"{}", seconds).retry_after == MAX_RETRY_AFTER_S
    body = b'{"details":{"retryAfterSeconds":1e300}}'
    assert error_from_answer(503, body, None).retry_after == MAX_RETRY_AFTER_S


def test_only_a_404_with_reason_not_found_means_that_the_object_is_gone() -> None:
    assert ApiError(404, "NotFound").is_object_not_found
    assert not error_from_answer(404, b"404 page not found\n", None).is_object_not_found


@pytest.mark.parametrize(
    ("is_transient", "statuses"),
    [(True, (200, 399, 408, 425, 429, 500, 503)), (False, (400, 404, 428, 499))],
)
def test_only_what_may_change_by_itself_is_transient(
    is_transient: bool, statuses: tuple[int, ...]
) -> None:
    assert [ApiError(each).is_transient for each in statuses] == [is_transient] * len(statuses)
