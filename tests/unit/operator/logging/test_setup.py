"""Logs are one JSON object per line, including those of libraries."""

from __future__ import annotations

import gc
import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import structlog
from aiohttp.http_exceptions import BadStatusLine
from aiohttp.web import RequestPayloadError

from stowage.operator.logging.setup import configure_logging
from stowage.operator.logging.verbosity import QUIET_LIBRARIES, set_verbosity


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    gc.collect()  # else warnings about objects of earlier tests would be logged here
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in QUIET_LIBRARIES:
        logging.getLogger(name).setLevel(logging.NOTSET)


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_is_a_json_object_with_level_and_time(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(json=True)
    structlog.get_logger().info("scheduled", pod="default/p", plugins=("NodeName",))
    (line,) = _lines(capsys)
    assert (line["event"], line["level"], line["pod"]) == ("scheduled", "info", "default/p")
    assert line["plugins"] == ["NodeName"]
    assert abs(datetime.fromisoformat(str(line["timestamp"])) - datetime.now(UTC)).days == 0
    assert str(line["timestamp"]).endswith("Z")


def test_libraries_log_warnings_in_the_same_format(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging(json=True)
    logging.getLogger("kopf.objects").info("Handler is invoked")
    logging.getLogger("kopf.objects").warning("Trouble")
    (line,) = _lines(capsys)
    assert (line["event"], line["logger"]) == ("Trouble", "kopf.objects")


def test_debug_lines_need_a_high_verbosity(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging(0, json=True)
    structlog.get_logger().debug("detail")
    assert _lines(capsys) == []
    configure_logging(4, json=True)
    structlog.get_logger().debug("detail")
    logging.getLogger("kopf.objects").debug("Handler is invoked")
    assert [line["event"] for line in _lines(capsys)] == ["detail", "Handler is invoked"]


def test_the_verbosity_of_loggers_in_use_changes_at_run_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging(0, json=True)
    log = structlog.get_logger()
    log.info("cached")
    set_verbosity(4)
    log.debug("detail")
    logging.getLogger("kopf.objects").debug("Handler is invoked")
    set_verbosity(2)
    log.debug("more detail")
    log.bind(pod="p").debug("bound detail")
    logging.getLogger("kopf.objects").info("Handler is invoked again")
    log.info("end")
    events = [line["event"] for line in _lines(capsys)]
    assert events == ["cached", "detail", "Handler is invoked", "end"]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stderr", "no_color", "is_coloured"),
    [(_Terminal, "", True), (_Terminal, "1", False), (io.StringIO, "", False)],
)
def test_text_has_colours_only_on_a_terminal_that_wants_them(
    stderr: type[io.StringIO],
    no_color: str,
    is_coloured: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = stderr()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv("NO_COLOR", no_color)
    configure_logging(json=False)
    structlog.get_logger().info("scheduled", pod="default/p", attempts=1)
    text = written.getvalue()
    assert ("\x1b[" in text) == is_coloured
    assert text.index("scheduled") < text.index("default/p") < text.index("attempts")


def test_a_json_line_begins_with_time_level_and_event(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(json=True)
    structlog.get_logger().info("scheduled", pod="default/p")
    (line,) = _lines(capsys)
    assert list(line) == ["timestamp", "level", "event", "pod"]


def test_kopfs_lines_about_repeated_requests_are_debug_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for verbosity, number in ((0, 0), (4, 1)):
        configure_logging(verbosity, json=True)
        text = "Request attempt #1 failed; will retry: GET http://example"
        logging.getLogger("kopf._cogs.clients.watching").error(text)
        assert len(_lines(capsys)) == number


HOSTILE = "a\x1b[2J\x9bb\nlevel=error\u202e"


def test_a_line_of_text_obeys_no_text_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(json=False)
    structlog.get_logger().info(HOSTILE, pod=HOSTILE, plugins=(HOSTILE,))
    written = capsys.readouterr().err
    assert written.endswith("\n")
    assert written[:-1].isprintable()
    assert r"\x1b[2J\x9bb\nlevel=error\u202e" in written


def test_a_line_of_json_has_no_character_that_steers_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging(json=True)
    structlog.get_logger().info(HOSTILE, pod=HOSTILE)
    written = capsys.readouterr().err
    assert written[:-1].isprintable()
    assert json.loads(written)["pod"] == HOSTILE


def test_a_traceback_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(json=False)
    structlog.get_logger().error("plugin raised", exc_info=ValueError("\x1b[2J"))
    assert "ValueError: \\x1b[2J\n" in capsys.readouterr().err


def test_a_line_of_json_has_the_traceback_of_an_exception(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging(json=True)
    structlog.get_logger().error("plugin raised", exc_info=ValueError("wrong"))
    (line,) = _lines(capsys)
    assert str(line["exception"]).endswith("ValueError: wrong")
    assert "exc_info" not in line


def test_a_request_that_is_not_http_leaves_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Anyone who reaches the port could fill the log otherwise."""
    for verbosity, number in ((0, 0), (4, 1)):
        configure_logging(verbosity, json=True)
        log = logging.getLogger("aiohttp.server")
        for error in (BadStatusLine("\x16"), RequestPayloadError("no gzip")):
            log.error("Error handling request from %s", "10.0.0.1", exc_info=error)
            assert len(_lines(capsys)) == number
    configure_logging(json=True)
    log.error("Error handling request", exc_info=ValueError("ours"))
    assert len(_lines(capsys)) == 1


@pytest.mark.parametrize("is_terminal", [True, False])
def test_lines_are_json_unless_a_person_reads_them_at_a_terminal(
    is_terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    configure_logging()
    structlog.get_logger().info("scheduled")
    assert capsys.readouterr().err.startswith("{") is not is_terminal


@pytest.mark.parametrize("as_json", [True, False])
def test_lines_of_libraries_have_the_time_in_utc(
    as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging(json=as_json)
    logging.getLogger("kopf.objects").warning("Trouble")
    time_in_utc = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
    assert re.search(time_in_utc, capsys.readouterr().err)
