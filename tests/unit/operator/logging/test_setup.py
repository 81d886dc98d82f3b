"""Logs are one JSON object per line, including those of libraries."""

from __future__ import annotations

import gc
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from stowage.operator.logging.setup import QUIET_LIBRARIES, configure_logging


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
    assert "timestamp" in line


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
