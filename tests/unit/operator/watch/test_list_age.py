"""Lists are compared with the versions that were seen before."""

from __future__ import annotations

import pytest

from stowage.operator.watch.list_age import STALE_LISTS_BEFORE_QUESTION, ListAge, StaleListError


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
