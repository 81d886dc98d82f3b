"""The failure of a plugin is worded once, as kube-scheduler words it."""

from __future__ import annotations

from stowage.api.status import error
from stowage.framework.failure import failed

DOING = 'running "Odd" filter plugin'


def test_the_text_says_what_was_being_run_and_why_it_failed() -> None:
    for cause, why in (
        (error("no quota"), "no quota"),
        (ValueError("no number"), "no number"),
        (KeyError(), "KeyError"),
    ):
        failure = failed(DOING, "Odd", cause)
        assert failure.status.message == f"{DOING}: {why}"
        assert failure.status.plugin == "Odd"
        assert failure.__cause__ is (cause if isinstance(cause, Exception) else None)


def test_a_failure_that_is_worded_already_stays_as_it_is() -> None:
    first = failed(DOING, "Odd", ValueError("no number"))
    assert failed("running PreFilter", "Other", first) is first
