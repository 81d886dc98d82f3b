"""Writes all decisions to files, beside the scheduling loop."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress

import msgspec
import structlog

from stowage.operator.decisions.log_files import DecisionLogOptions, LogFiles
from stowage.operator.decisions.records import DecisionIds, RecordedAttempt

MAX_WAITING = 10_000
"""Attempts that wait for the thread; one more is dropped."""
DECISIONS_AT_ONCE = 50
RETRY_S = 5.0
"""Pause after a failed write."""

log = structlog.get_logger("stowage.operator.decisions.log")


class DecisionLog:
    """Appends each decision as a line of JSON to the files of a directory.

    A thread encodes and writes. While files cannot be written, e.g. because the disk is full,
    scheduling goes on: the decisions wait, those that find the queue full are dropped and counted,
    and the thread tries again every `RETRY_S`.

    Args:
        options: Directory and limits of the files.
        ids: Makes the ids.
        pause: Waits for some seconds or until the event is set.

    Attributes:
        num_written: Number of decisions written.
        num_dropped: Number of decisions that were dropped.
        is_failing: Whether the last write failed.
    """

    def __init__(
        self,
        options: DecisionLogOptions,
        ids: DecisionIds,
        pause: Callable[[threading.Event, float], object] = threading.Event.wait,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        self.num_written = 0
        self.num_dropped = 0
        self.is_failing = False
        self._options = options
        self._ids = ids
        self._pause = pause
        self._files = LogFiles(options)
        self._waiting: queue.Queue[RecordedAttempt | None] = queue.Queue(max_waiting)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="decision log", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def add(self, recorded: RecordedAttempt) -> None:
        """Write the attempt soon; never blocks."""
        try:
            self._waiting.put_nowait(recorded)
        except queue.Full:
            self.num_dropped += 1

    def close(self, grace_s: float) -> None:
        """Write what waits, for at most `grace_s`, and end."""
        self._stopping.set()
        with suppress(queue.Full):  # The thread then sees `_stopping` after the full queue.
            self._waiting.put_nowait(None)
        self._thread.join(grace_s)

    def _run(self) -> None:
        while (batch := self._next_batch()) or not self._stopping.is_set():
            if batch and not self._write_patiently(batch):
                self.num_dropped += len(batch) + self._waiting.qsize()
                break
        self._files.close()

    def _next_batch(self) -> list[RecordedAttempt]:
        """The next attempts; waits for one unless the log is stopping."""
        batch: list[RecordedAttempt] = []
        with suppress(queue.Empty):
            while len(batch) < DECISIONS_AT_ONCE:
                must_wait = not batch and not self._stopping.is_set()
                recorded = self._waiting.get(block=must_wait)
                if recorded is None:
                    break
                batch.append(recorded)
        return batch

    def _write_patiently(self, batch: list[RecordedAttempt]) -> bool:
        """Write the attempts, as often as it takes; False if the log is stopping."""
        lines = b"".join(msgspec.json.encode(self._ids.decision(each)) + b"\n" for each in batch)
        while not self._write(lines, batch[0].unix_ns):
            if self._stopping.is_set():
                return False
            self._pause(self._stopping, RETRY_S)
        self.num_written += len(batch)
        return True

    def _write(self, lines: bytes, unix_ns: int) -> bool:
        directory = str(self._options.directory)
        try:
            self._files.write(lines, unix_ns)
        except OSError as error:
            if not self.is_failing:
                log.warning(
                    "decision log not written",
                    directory=directory,
                    error=str(error),
                )
            self.is_failing = True
            self._files.close()
            return False
        if self.is_failing:
            log.info("decision log written again", dropped=self.num_dropped)
        self.is_failing = False
        return True
