"""Writing a log line never blocks, even if the reader is slow or gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stowage.operator.logging import sink as sink_module
from stowage.operator.logging.sink import LogSink, flush_logs, standard_error

LINE = "x" * 99 + "\n"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        if _is_open(end):
            os.close(end)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _read_all(descriptor: int, num_bytes: int) -> bytes:
    read = b""
    while len(read) < num_bytes:
        read += os.read(descriptor, 2**16)
    return read


def test_a_line_is_written_at_once(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    LogSink(writer).write("scheduled ü\n")
    assert os.read(reader, 100).decode() == "scheduled ü\n"


def test_lines_that_are_read_late_arrive_in_order(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    sink = LogSink(writer)
    lines = [f"{number:099d}\n" for number in range(3000)]
    for line in lines:
        sink.write(line)
    assert _read_all(reader, 300_000).decode() == "".join(lines)
    sink.drain(10.0)
    sink.write("and on\n")
    assert os.read(reader, 100) == b"and on\n"


def test_draining_waits_until_the_lines_are_written_but_no_longer_than_asked(
    pipe: tuple[int, int],
) -> None:
    reader, writer = pipe
    sink = LogSink(writer)
    sink.write("y" * 200_000)
    sink.drain(0.0)
    draining = threading.Thread(target=sink.drain, args=(60.0,))
    draining.start()
    draining.join(0.02)
    assert draining.is_alive()  # nobody has read
    _read_all(reader, 200_000)
    draining.join(60.0)
    assert not draining.is_alive()


def test_the_thread_that_writes_late_lines_ends_with_the_process(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    before = set(threading.enumerate())
    sink = LogSink(writer)
    sink.write("y" * 200_000)
    (thread,) = set(threading.enumerate()) - before
    assert (thread.name, thread.daemon) == ("log", True)
    _read_all(reader, 200_000)
    sink.drain(60.0)


def test_lines_that_nobody_reads_do_not_keep_the_process_from_ending(
    pipe: tuple[int, int],
) -> None:
    code = (
        "import sys; from stowage.operator.logging.sink import LogSink; "
        "LogSink(int(sys.argv[1])).write('y' * 200_000)"
    )
    _, writer = pipe
    command = [sys.executable, "-c", code, str(writer)]
    assert subprocess.run(command, pass_fds=[writer], check=False, timeout=60.0).returncode == 0


def test_a_line_longer_than_the_pipe_buffer_arrives_whole(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    sink = LogSink(writer)
    sink.write("y" * 200_000 + "\n")
    sink.write("next\n")
    assert _read_all(reader, 200_006).decode() == "y" * 200_000 + "\nnext\n"


def test_lines_beyond_the_buffer_limit_are_dropped_and_counted(
    pipe: tuple[int, int],
) -> None:
    reader, writer = pipe
    sink = LogSink(writer, max_waiting_bytes=10_000)
    for _ in range(2000):
        sink.write(LINE)
    num_written = 2000 - sink.num_dropped
    assert 10_000 <= 100 * num_written < 200_000
    _read_all(reader, 100 * num_written)
    sink.drain(10.0)
    dropped = sink.num_dropped
    sink.write("next\n")
    note, line = os.read(reader, 1000).decode().splitlines()
    assert (json.loads(note)["num"], line) == (dropped, "next")


def test_a_closed_reader_is_no_error(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    os.close(reader)
    sink = LogSink(writer)
    sink.write(LINE)
    assert sink.num_dropped == 1


def test_lines_that_wait_for_a_reader_that_goes_away_are_dropped_and_counted(
    pipe: tuple[int, int],
) -> None:
    reader, writer = pipe
    sink = LogSink(writer)
    for _ in range(2):
        sink.write("y" * 200_000)
    os.close(reader)
    sink.drain(60.0)
    assert sink.num_dropped == 2


def test_a_pipe_that_another_process_fills_first_is_waited_for(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = pipe
    write, is_full = os.write, [True, True]

    def write_later(descriptor: int, line: bytes) -> int:
        if is_full:
            is_full.pop()
            raise BlockingIOError
        return write(descriptor, line)

    sink = LogSink(writer)
    monkeypatch.setattr(os, "write", write_later)
    sink.write("late\n")
    sink.drain(60.0)
    assert os.read(reader, 100) == b"late\n"
    assert (sink.num_dropped, is_full) == (0, [])


def test_flushing_waits_until_the_lines_for_standard_error_are_written(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = pipe
    read: list[bytes] = []
    with os.fdopen(os.dup(writer), "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        monkeypatch.setattr(sink_module, "FLUSH_TIMEOUT_S", 60.0)
        standard_error().write("y" * 200_000)
        reading = threading.Thread(target=lambda: read.append(_read_all(reader, 200_000)))
        reading.start()
        flush_logs()
        before = set(threading.enumerate())
    reading.join(60.0)
    assert [len(each) for each in read] == [200_000]
    assert "log" not in {thread.name for thread in before}


def test_a_full_disk_is_no_error() -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        sink = LogSink(full.fileno())
        sink.write(LINE)
        sink.write(LINE)
        assert sink.num_dropped == 2
