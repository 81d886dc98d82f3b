"""Lists are compared with the versions that were seen before."""

from __future__ import annotations

import pytest

from stowage.operator.client.api_error import ApiError
from stowage.operator.watch.list_age import (
    STALE_LISTS_BEFORE_QUESTION,
    ListAge,
    StaleListError,
    doubt_stale_lists,
)
from tests.support.fake_api import FakeApiClient


def test_before_anything_was_seen_no_list_is_too_old() -> None:
    age = ListAge()
    assert not age.has_gone_back("0")
    assert age.question() == 0


def test_the_server_is_asked_for_the_newest_version_after_lists_that_are_older() -> None:
    age = ListAge()
    age.note("7")
    for _ in range(STALE_LISTS_BEFORE_QUESTION):
        assert age.question() == 0
        with pytest.raises(StaleListError):
            age.has_gone_back("6")
    assert age.question() == 7
    age.require(9)
    assert age.question() == 9


async def test_a_question_that_is_refused_for_another_reason_does_not_make_the_age_doubtful() -> (
    None
):
    age = ListAge()
    age.note("9")
    for _ in range(STALE_LISTS_BEFORE_QUESTION):
        with pytest.raises(StaleListError):
            age.has_gone_back("6")
    client = FakeApiClient(ask=[ApiError(403, "Forbidden", "no right")])
    with pytest.raises(ApiError, match="no right"):
        await doubt_stale_lists(age, client, "/api/v1/nodes")
    assert age.question() == 9
    (asked,) = client.requests
    assert asked.path == "/api/v1/nodes"
    assert asked.params == {
        "limit": "1",
        "resourceVersion": "9",
        "resourceVersionMatch": "NotOlderThan",
    }
