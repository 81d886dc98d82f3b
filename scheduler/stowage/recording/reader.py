"""Reads a recording."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from types import TracebackType

from stowage.api.events import Event
from stowage.engine.journal import Entry, HandleCall
from stowage.recording.calls import CONTINUED, CheckpointPart
from stowage.recording.frames import UnreadableRecording
from stowage.recording.names import PATTERN, following_segment, recordings_in, segments_from
from stowage.recording.segment import Segment


def find_recording(path: Path) -> Path:
    """The file itself, or the oldest segment of the newest recording of a folder.

    Raises:
        UnreadableRecording: There is none.
    """
    if not path.is_dir():
        return path
    found = recordings_in(path)
    if not found:
        raise UnreadableRecording(f"{path}: expected a recording ({PATTERN}) in this folder")
    return found[-1][0]


class Recording(AbstractContextManager["Recording"]):
    """An open recording: a segment and those that follow it.

    Args:
        path: The segment to begin with.

    Attributes:
        header: The header of this segment.
        end: Why the recording ends; known after the last call.

    Raises:
        UnreadableRecording: It is no recording of this version, or a segment is missing; the
            message names the file.
        OSError: The file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._paths = segments_from(path)
        _check_complete(self._paths)
        self._open = Segment(path)
        self.header = self._open.header
        self.end = ""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open.close()

    def calls(self) -> Iterator[Entry]:
        """The calls of all segments, oldest first.

        If the first segment has a checkpoint, it is the first call. The others are skipped: the
        calls before them are there.

        Raises:
            UnreadableRecording: A segment is damaged, truncated though others follow, or has
                entries of another version.
            OSError: A segment cannot be read.
        """
        yield from _with_checkpoint(self._open)
        for path in self._paths[1:]:
            _check_continues(self._open, path)
            self._open.close()
            self._open = Segment(path)
            for entry in self._open.entries():
                if not isinstance(entry, CheckpointPart):
                    yield entry
        self.end = self._open.end
        if self.end == CONTINUED:
            self.end = "the following segments are missing"


def _with_checkpoint(segment: Segment) -> Iterator[Entry]:
    """The entries of a segment, with the parts of its checkpoint as one call."""
    known: list[Event] = []
    is_complete = not segment.header.checkpoint
    for entry in segment.entries():
        if not isinstance(entry, CheckpointPart):
            yield entry
            continue
        known += entry.events
        if entry.is_last:
            is_complete = True
            yield HandleCall(entry.now, tuple(known), ())
    if not is_complete:
        raise UnreadableRecording(f"{segment.path}: truncated: its checkpoint is not complete")


def _check_complete(paths: list[Path]) -> None:
    for before, after in pairwise(paths):
        missing = following_segment(before)
        if missing is not None and missing != after:
            raise UnreadableRecording(
                f"{missing}: this segment is missing; begin with one after it: {after}"
            )


def _check_continues(segment: Segment, following: Path) -> None:
    if segment.end != CONTINUED:
        raise UnreadableRecording(
            f"{segment.path}: truncated: it ends before the next segment begins "
            f"({segment.end}); begin with that one: {following}"
        )
