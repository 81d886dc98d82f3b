"""A log sink that never blocks the event loop.

A write to a pipe whose reader has stopped blocks the process until the lease expires. So the sink
writes a line directly only if there is room for it; otherwise a thread writes it later. It drops
and counts the lines beyond a limit, and those that cannot be written (disk full, reader gone).
"""

from __future__ import annotations

import atexit
import io
import os
import select
import stat
import sys
import threading
from collections import deque
from typing import TextIO, cast

PIPE_BUF = select.PIPE_BUF
"""A write of this size to a ready file descriptor does not block."""
MAX_WAITING_BYTES = 2**20
FLUSH_TIMEOUT_S = 1.0
"""How long the end of the process waits for lines that are not written yet."""


class LogSink(io.TextIOBase):
    """A text file whose `write` neither blocks nor raises.

    Args:
        descriptor: Descriptor of the open file.
        max_waiting_bytes: Maximum size of the lines that wait for the thread.

    Attributes:
        num_dropped: Number of lines dropped since the last written line.
    """

    def __init__(self, descriptor: int, max_waiting_bytes: int = MAX_WAITING_BYTES) -> None:
        self.num_dropped = 0
        self._descriptor = descriptor
        self._max_waiting_bytes = max_waiting_bytes
        # A regular file is always ready, and a line is written for each pod.
        self._is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self._readiness = select.poll()
        self._readiness.register(descriptor, select.POLLOUT)
        self._waiting: deque[bytes] = deque()
        self._num_waiting_bytes = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def fileno(self) -> int:
        """The descriptor of the open file."""
        return self._descriptor

    def write(self, text: str) -> int:
        """Write a line, queue it for the thread, or drop it."""
        line = text.encode("utf-8", "backslashreplace")
        with self._lock:
            if not self._waiting:
                line = self._write_without_blocking(line)
            if line:
                self._enqueue(line)
        return len(text)

    def drain(self, seconds: float) -> None:
        """Wait at most that long until the thread has written the waiting lines."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _write_without_blocking(self, line: bytes) -> bytes:
        """Write as much as there is room for; returns the rest."""
        if self.num_dropped:
            line = b'{"event":"log lines dropped","num":%d}\n' % self.num_dropped + line
        try:
            while line and (self._is_file or self._readiness.poll(0)):
                line = line[os.write(self._descriptor, line[:PIPE_BUF]) :]
        except BlockingIOError:
            return line
        except OSError:
            self.num_dropped += 1
            return b""
        self.num_dropped = 0
        return line

    def _enqueue(self, line: bytes) -> None:
        """Queue a line for the thread; the caller holds the lock."""
        if self._num_waiting_bytes + len(line) > self._max_waiting_bytes:
            self.num_dropped += 1
            return
        self._waiting.append(line)
        self._num_waiting_bytes += len(line)
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_waiting, name="log", daemon=True)
            self._thread.start()

    def _write_waiting(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                line = self._waiting[0]
            self._write_blocking(line)
            with self._lock:
                # Removed after it is written, so that `write` does not write a later line first.
                self._waiting.popleft()
                self._num_waiting_bytes -= len(line)

    def _write_blocking(self, line: bytes) -> None:
        try:
            while line:
                self._readiness.poll()
                line = line[os.write(self._descriptor, line[:PIPE_BUF]) :]
        except BlockingIOError:
            self._write_blocking(line)
        except OSError:
            self.num_dropped += 1


class CurrentStandardError(io.TextIOBase):
    """Writes to what stderr is at that moment: loggers outlive a stderr that a caller replaced."""

    def write(self, text: str) -> int:
        """Write a line."""
        return sys.stderr.write(text)

    def flush(self) -> None:
        """Flush it."""
        sys.stderr.flush()


_open_sinks: list[LogSink] = []


def flush_logs() -> None:
    """Wait briefly until the last log lines are written."""
    for sink in _open_sinks:
        sink.drain(FLUSH_TIMEOUT_S)


def standard_error() -> TextIO:
    """The sink of stderr; what stderr is at each write, if it is not a real file."""
    try:
        sink = LogSink(sys.stderr.fileno())
    except (io.UnsupportedOperation, OSError):
        return cast("TextIO", CurrentStandardError())
    if not _open_sinks:
        atexit.register(flush_logs)
    _open_sinks[:] = [sink]
    return cast("TextIO", sink)
