"""Where log lines go: a stderr that nobody reads, or that is full, holds nothing up.

A write to a pipe whose reader has stopped blocks, and with it the event loop: the lease would run
out because of a log line. So a line is written only if there is room at once. Others wait, up to a
limit, for a thread that may block in peace. What cannot be written at all (disk full, reader gone)
is counted and dropped.
"""

from __future__ import annotations

import atexit
import io
import os
import select
import sys
import threading
from collections import deque
from typing import TextIO, cast

PIPE_BUF = select.PIPE_BUF
"""So much can be written without blocking to whatever says that it can be written to."""
MAX_WAITING_BYTES = 2**20
LAST_WORDS_S = 1.0
"""How long the end of the process waits for lines that still wait."""


class LogSink(io.TextIOBase):
    """A text file whose `write` neither blocks nor raises.

    Args:
        descriptor: Of the open file.
        max_waiting_bytes: What comes while so much waits is dropped.

    Attributes:
        num_dropped: Lines dropped since the last one that could be written.
    """

    def __init__(self, descriptor: int, max_waiting_bytes: int = MAX_WAITING_BYTES) -> None:
        self.num_dropped = 0
        self._descriptor = descriptor
        self._max_waiting_bytes = max_waiting_bytes
        self._readiness = select.poll()
        self._readiness.register(descriptor, select.POLLOUT)
        self._waiting: deque[bytes] = deque()
        self._num_waiting_bytes = 0
        self._lock = threading.Lock()
        self._drain: threading.Thread | None = None

    def fileno(self) -> int:
        """The descriptor, for those who write past all this."""
        return self._descriptor

    def write(self, text: str) -> int:
        """Write a line now, or soon, or never."""
        line = text.encode("utf-8", "backslashreplace")
        with self._lock:
            if not self._waiting:
                line = self._written_at_once(line)
            if line:
                self._keep(line)
        return len(text)

    def settle(self, seconds: float) -> None:
        """Wait that long at most for what waits."""
        drain = self._drain
        if drain is not None:
            drain.join(seconds)

    def _written_at_once(self, line: bytes) -> bytes:
        """Write what there is room for; the rest."""
        if self.num_dropped:
            line = b'{"event":"log lines dropped","num":%d}\n' % self.num_dropped + line
        try:
            while line and self._readiness.poll(0):
                line = line[os.write(self._descriptor, line[:PIPE_BUF]) :]
        except BlockingIOError:
            return line
        except OSError:
            self.num_dropped += 1
            return b""
        self.num_dropped = 0
        return line

    def _keep(self, line: bytes) -> None:
        """Have a line written by the thread; the lock is held."""
        if self._num_waiting_bytes + len(line) > self._max_waiting_bytes:
            self.num_dropped += 1
            return
        self._waiting.append(line)
        self._num_waiting_bytes += len(line)
        if self._drain is None:
            self._drain = threading.Thread(target=self._write_waiting, name="log", daemon=True)
            self._drain.start()

    def _write_waiting(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._drain = None
                    return
                line = self._waiting[0]
            self._write_patiently(line)
            with self._lock:
                # Only now: a line that comes meanwhile must not overtake this one.
                self._waiting.popleft()
                self._num_waiting_bytes -= len(line)

    def _write_patiently(self, line: bytes) -> None:
        try:
            while line:
                self._readiness.poll()
                line = line[os.write(self._descriptor, line[:PIPE_BUF]) :]
        except BlockingIOError:
            self._write_patiently(line)
        except OSError:
            self.num_dropped += 1


_open_sinks: list[LogSink] = []


def flush_logs() -> None:
    """Wait a moment for what was logged last."""
    for sink in _open_sinks:
        sink.settle(LAST_WORDS_S)


def standard_error() -> TextIO:
    """Where to log: stderr that never blocks, or, where that is no real file, stderr itself."""
    try:
        sink = LogSink(sys.stderr.fileno())
    except (io.UnsupportedOperation, OSError):
        return sys.stderr
    if not _open_sinks:
        atexit.register(flush_logs)
    _open_sinks[:] = [sink]
    return cast("TextIO", sink)
