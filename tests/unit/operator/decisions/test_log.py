"""All decisions are written to files in a thread; a full disk stops only the files."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from stowage.operator.decisions.log import DecisionLog
from stowage.operator.decisions.log_files import DecisionLogOptions, LogFiles
from stowage.operator.decisions.records import DecisionIds
from tests.support.decisions import TIME_NS, attempt, recorded

IDS = DecisionIds("0a")
JOIN_S = 30.0


def _files(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(directory.iterdir())}


def _options(directory: Path, **limits: Any) -> DecisionLogOptions:
    return DecisionLogOptions(directory=directory, **limits)


def test_each_decision_is_a_line_of_json(tmp_path: Path) -> None:
    log = DecisionLog(_options(tmp_path / "new" / "log"), IDS)
    log.start()
    for number in range(1, 121):
        log.add(recorded(attempt(number), number))
    log.close(JOIN_S)
    ((name, text),) = _files(tmp_path / "new" / "log").items()
    assert name == "decisions-20270115T080001.000000Z.jsonl"
    assert [json.loads(line)["id"] for line in text.splitlines()] == [
        f"0a-{number}" for number in range(1, 121)
    ]
    assert (log.num_written, log.num_dropped, log.is_failing) == (120, 0, False)


def test_a_new_file_begins_when_the_next_lines_would_not_fit(tmp_path: Path) -> None:
    files = LogFiles(_options(tmp_path, max_file_bytes=10))
    for second, line in enumerate((b"123456\n", b"12\n", b"1\n", b"more than ten bytes\n", b"1\n")):
        files.write(line, TIME_NS + second * 10**9)
    files.close()
    assert list(_files(tmp_path).values()) == [
        "123456\n12\n",
        "1\n",
        "more than ten bytes\n",
        "1\n",
    ]


def test_others_than_the_owner_and_its_group_cannot_read_the_files(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        files = LogFiles(_options(tmp_path))
        files.write(b"1\n", TIME_NS)
        files.close()
    finally:
        os.umask(mask)
    assert [stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()] == [0o640]


def test_a_new_file_begins_after_its_age(tmp_path: Path) -> None:
    files = LogFiles(_options(tmp_path, max_file_age_s=60.0))
    for second in (0, 59, 60, 61):
        files.write(b"%d\n" % second, TIME_NS + second * 10**9)
    files.close()
    assert list(_files(tmp_path).values()) == ["0\n59\n", "60\n61\n"]


def test_only_the_newest_files_are_kept(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    files = LogFiles(_options(tmp_path, max_file_age_s=1.0, max_files=2))
    for second in range(5):
        files.write(b"%d\n" % second, TIME_NS + second * 10**9)
    files.close()
    assert list(_files(tmp_path).values()) == ["3\n", "4\n", "mine"]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Room on the disk in bytes; a write that needs more writes what fits and fails."""
    room = {"bytes": 10**9}
    usual = os.write

    def write(descriptor: int, data: bytes) -> int:
        if len(data) <= room["bytes"]:
            return usual(descriptor, data)
        if room["bytes"]:
            fits, room["bytes"] = room["bytes"], 0
            return usual(descriptor, data[:fits])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("stowage.operator.decisions.log_files.os.write", write)
    return room


def test_a_line_that_does_not_fit_on_the_disk_leaves_no_part_of_it(
    tmp_path: Path, disk: dict[str, int]
) -> None:
    files = LogFiles(_options(tmp_path))
    files.write(b"first\n", TIME_NS)
    disk["bytes"] = 3
    with pytest.raises(OSError, match="No space left"):
        files.write(b"second\n", TIME_NS)
    disk["bytes"] = 10**9
    files.write(b"third\n", TIME_NS)
    files.close()
    assert list(_files(tmp_path).values()) == ["first\nthird\n"]


def test_a_full_disk_stops_nothing_and_the_log_resumes(
    tmp_path: Path, disk: dict[str, int]
) -> None:
    """While the disk is full the queue fills, and decisions beyond it are dropped."""
    is_waiting, go_on = threading.Event(), threading.Event()

    def pause(_stopping: threading.Event, _seconds: float) -> None:
        is_waiting.set()
        assert go_on.wait(JOIN_S)

    log = DecisionLog(_options(tmp_path), IDS, pause, max_waiting=3)
    disk["bytes"] = 0
    log.start()
    log.add(recorded(attempt(1)))
    assert is_waiting.wait(JOIN_S)
    for number in range(2, 7):
        log.add(recorded(attempt(number)))
    assert (log.is_failing, log.num_written, log.num_dropped) == (True, 0, 2)

    with capture_logs() as logs:
        disk["bytes"] = 10**9
        go_on.set()
        log.close(JOIN_S)

    assert [each["event"] for each in logs] == ["decision log written again"]
    (text,) = _files(tmp_path).values()
    assert [json.loads(line)["id"] for line in text.splitlines()] == [
        "0a-1",
        "0a-2",
        "0a-3",
        "0a-4",
    ]
    assert (log.is_failing, log.num_written, log.num_dropped) == (False, 4, 2)


def test_a_directory_that_cannot_be_made_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = DecisionLog(_options(tmp_path / "file" / "log"), IDS)
    with capture_logs() as logs:
        log.start()
        log.add(recorded(attempt(1)))
        log.close(JOIN_S)
    (line,) = logs
    assert (line["event"], line["log_level"]) == ("decision log not written", "warning")
    assert line["directory"] in line["error"]
    assert (log.is_failing, log.num_written, log.num_dropped) == (True, 0, 1)
