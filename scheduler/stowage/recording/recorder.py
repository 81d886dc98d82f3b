"""Writes a recording in a thread, off the scheduling path.

The engine, or an observer, appends each call to a queue. The thread empties the queue once a
second, and sooner if it is long. It follows the objects that the calls show, so it can begin the
next segment with a checkpoint by itself. If the thread cannot keep up, or a file cannot be written,
the recording ends; scheduling never waits for it and never fails because of it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from stowage.engine.journal import Entry, HandleCall
from stowage.recording.anonymiser import Anonymiser
from stowage.recording.header import Header
from stowage.recording.limits import NoRoom, RecordingLimits
from stowage.recording.segment_writer import FRAME_SIZE, SegmentWriter

FLUSH_S = 1.0
"""A crash loses the calls of at most this time."""
_CLOSE_S = 5.0
"""How long the end of the process waits for a disk that does not answer."""
_HURRY = 10_000
_MAX_WAITING = 1_000_000
"""Events and instructions that wait for the thread: a first list alone may bring 150,000."""


class Recorder:
    """Records calls into new files of a folder: those of one engine, or what an observer sees.

    Args:
        folder: The folder; made if it does not exist.
        header: The header; its time names the files.
        started: The time at the start, of the clock of the calls.
        limits: The limits of the folder.
        ended: Called in the thread with the reason if the recording ends before `close`.
        anonymiser: Replaces the names in the calls and in the header; None records them.

    Attributes:
        is_recording: Whether calls are recorded: False after a failure.

    Raises:
        OSError: The file cannot be made.
    """

    def __init__(
        self,
        folder: Path,
        header: Header,
        started: float,
        limits: RecordingLimits,
        ended: Callable[[str], None],
        anonymiser: Anonymiser | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._segments = SegmentWriter(folder, header, started, limits, anonymiser)
        self._ended = ended
        self._waiting: deque[Entry] = deque()
        # The engine's thread writes the first, the recorder's thread the second.
        self._num_recorded = 0
        self._num_written = 0
        self._failure = ""
        self._closed_for = ""
        self._wake = threading.Event()
        self._is_closing = False
        self.is_recording = True
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    @property
    def path(self) -> Path:
        """The file that is written now."""
        return self._segments.path

    @property
    def num_bytes(self) -> int:
        """The size of all recordings in the folder."""
        return self._segments.num_bytes

    def record(self, entry: Entry) -> None:
        """Append a call; the engine or the observer calls it."""
        if not self.is_recording:
            return
        self._num_recorded += _size(entry)
        self._waiting.append(entry)
        num_waiting = self._num_recorded - self._num_written
        if num_waiting > _MAX_WAITING:
            self._stop("the disk or the processor is too slow: too many calls are waiting")
        elif num_waiting > _HURRY:
            self._wake.set()

    def close(self, reason: str = "the scheduler stopped") -> None:
        """Write what is waiting, and end the recording for this reason."""
        self._closed_for = reason
        self._is_closing = True
        self._wake.set()
        self._thread.join(_CLOSE_S)

    def _stop(self, reason: str) -> None:
        self.is_recording = False
        self._failure = reason
        self._wake.set()

    def _run(self) -> None:
        try:
            self._write_until_ended()
        except OSError as error:
            self._failure = f"{self.path}: {error.strerror or error}"
        except NoRoom as error:
            self._failure = str(error)
        except Exception as fault:  # a call that cannot be encoded ends the recording only
            self._failure = repr(fault)
        self.is_recording = False
        self._segments.close()
        self._waiting.clear()
        if self._failure:
            self._ended(self._failure)

    def _write_until_ended(self) -> None:
        is_last = False
        while not is_last:
            self._wake.wait(FLUSH_S)
            self._wake.clear()
            is_last = self._is_closing or bool(self._failure)
            self._write_waiting()
        self._segments.end(self._failure or self._closed_for)

    def _write_waiting(self) -> None:
        has_written = False
        while self._write_part():
            has_written = True
            if self._segments.is_full:
                self._segments.begin_next(self._write_and_sync_part)
        if has_written:
            self._segments.sync()

    def _write_and_sync_part(self) -> None:
        if self._write_part():
            self._segments.sync()

    def _write_part(self) -> bool:
        """Write the calls of one frame; False if none are waiting."""
        part: list[Entry] = []
        size = 0
        while self._waiting and size < FRAME_SIZE:
            part.append(self._waiting.popleft())
            size += _size(part[-1])
        if part:
            self._segments.write(part)
            self._num_written += size
        return bool(part)


def _size(entry: Entry) -> int:
    num_events = len(entry.events) if isinstance(entry, HandleCall) else 0
    return 1 + num_events + len(entry.instructions)
