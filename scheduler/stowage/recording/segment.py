"""Reads one segment of a recording."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from stowage.engine.journal import Entry
from stowage.recording.calls import NOT_CALLS, CheckpointPart, End, decode_calls
from stowage.recording.frames import FrameDecoder, UnreadableRecording
from stowage.recording.header import Header

#: The years 1970 to 9999, which can be shown.
_MIN_UNIX_S, _MAX_UNIX_S = 0.0, 253_402_300_800.0


class Segment:
    """An open segment.

    Args:
        path: The file.

    Attributes:
        header: The header.
        end: Why the segment ends; known after the last entry.

    Raises:
        UnreadableRecording: It is no recording of this version; the message names the file.
        OSError: The file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("rb")
        self._frames = FrameDecoder(self._file)
        self.end = ""
        try:
            self.header = msgspec.json.decode(self._frames.header(), type=Header)
        except UnreadableRecording as error:
            self._file.close()
            raise UnreadableRecording(f"{path}: {error}") from error
        except msgspec.DecodeError as error:
            self._file.close()
            expected = "expected the JSON with which Stowage begins a recording"
            raise UnreadableRecording(
                f"{path}: the header is damaged: {error} ({expected})"
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def entries(self) -> Iterator[Entry | CheckpointPart]:
        """The checkpoint, if there is one, and the calls, oldest first.

        Raises:
            UnreadableRecording: The segment is damaged, or has entries of another version.
        """
        try:
            for data in self._frames.frames():
                yield from self._entries_of(data)
        except UnreadableRecording as error:
            raise UnreadableRecording(f"{self.path}: {error}") from error
        cut = self._frames.num_cut
        if cut:
            self.end = f"cut: the last {cut} bytes are an incomplete frame"
        elif not self.end:
            self.end = "open: the process was killed, or it still records"

    def _entries_of(self, data: bytes) -> Iterator[Entry | CheckpointPart]:
        try:
            entries = decode_calls(data)
        except NOT_CALLS as error:
            raise UnreadableRecording(
                f"recorded by Stowage {self.header.stowage}, which this version cannot read: "
                f"{error}"
            ) from error
        for entry in entries:
            if isinstance(entry, End):
                self.end = entry.reason
                continue
            self._check_time(entry.now)
            yield entry

    def _check_time(self, now: float) -> None:
        """Check that a call has a time of day: damaged numbers would fail where it is shown."""
        if not _MIN_UNIX_S <= self.header.unix_offset_s + now < _MAX_UNIX_S:
            raise UnreadableRecording(f"a call at {now} s (expected a time of 1970 to 9999)")
