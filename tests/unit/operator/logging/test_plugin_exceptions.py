"""A plugin that raises leaves one traceback for each error."""

from __future__ import annotations

from typing import Any

import structlog

from stowage.operator.logging.plugin_exceptions import PluginExceptionLog


def _error(text: str, *, elsewhere: bool = False) -> Exception:
    try:
        if elsewhere:
            raise ValueError(text)
        raise ValueError(text)
    except ValueError as error:
        return error


def _error_of_library(at: str) -> Exception:
    """An error that the plugin catches nowhere, raised at the end of two calls."""
    try:
        int(at) if at else _fail()
    except ValueError as error:
        return error
    raise AssertionError


def _fail() -> None:
    raise ValueError("deep")


def _lines(*reports: tuple[str, str, Exception]) -> list[Any]:
    exceptions = PluginExceptionLog()
    with structlog.testing.capture_logs() as lines:
        for report in reports:
            exceptions.report(*report)
    return list(lines)


def test_the_line_names_plugin_and_extension_point_and_has_the_traceback() -> None:
    error = _error("no such label")
    (line,) = _lines(("Mine", "Filter", error))
    assert (line["event"], line["log_level"]) == ("plugin raised", "error")
    assert (line["plugin"], line["extension_point"]) == ("Mine", "Filter")
    assert (line["error"], line["exc_info"]) == ("no such label", error)


def test_the_same_error_of_another_pod_is_not_logged_again() -> None:
    assert len(_lines(("Mine", "Filter", _error("p1")), ("Mine", "Filter", _error("p2")))) == 1


def test_another_error_plugin_or_extension_point_is_logged() -> None:
    lines = _lines(
        ("Mine", "Filter", _error("")),
        ("Mine", "Score", _error("")),
        ("Yours", "Filter", _error("")),
        ("Mine", "Filter", _error("", elsewhere=True)),
    )
    assert len(lines) == 4
    assert lines[0]["error"] == "ValueError"


def test_an_error_that_was_never_raised_is_logged() -> None:
    assert len(_lines(("Mine", "Filter", ValueError("made, not raised")))) == 1


def test_an_error_is_known_by_the_innermost_line_that_raised_it() -> None:
    deep, plain = _error_of_library(""), _error_of_library("x")
    assert len(_lines(("Mine", "Filter", deep), ("Mine", "Filter", plain))) == 2
