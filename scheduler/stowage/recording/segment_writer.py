"""Writes a recording as segments; all but the first begin with a checkpoint.

A segment gets its name when its checkpoint is complete, and calls go to the segment before it until
then. So a crash at any time leaves all calls in files that can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from stowage.api.events import Event
from stowage.engine.journal import Entry, HandleCall
from stowage.recording.anonymiser import Anonymiser
from stowage.recording.calls import CONTINUED, CallEncoder, CheckpointPart, End
from stowage.recording.header import Header, recorded_configuration
from stowage.recording.known_objects import KnownObjects
from stowage.recording.limits import FinishedSegments, RecordingLimits
from stowage.recording.names import segment_name
from stowage.recording.segment_file import SegmentFile

FRAME_SIZE = 500
"""Events and instructions per frame: the encoder holds the interpreter for one to two ms."""
_END_BYTES = 512
"""Room that is kept for the ends of the open segments."""


class SegmentWriter:
    """The segments of a new recording.

    Args:
        folder: The folder.
        header: The header of the first segment; its time names the files.
        started: The time at the start, of the clock of the calls.
        limits: The limits of the folder; the oldest segments are removed to keep them.
        anonymiser: Replaces the names in the calls and in the headers; None records them.

    Raises:
        OSError: A file cannot be made or removed.
    """

    def __init__(
        self,
        folder: Path,
        header: Header,
        started: float,
        limits: RecordingLimits,
        anonymiser: Anonymiser | None,
    ) -> None:
        self._folder = folder
        self._time_of_day = header.time_of_day(started)
        self._header = header
        self._limits = limits
        self._anonymiser = anonymiser
        self._calls = CallEncoder(anonymiser)
        self._finished = FinishedSegments(folder, limits)
        self._known = KnownObjects()
        self._since: list[Event] | None = None
        self._now = started
        self._open_files: list[SegmentFile] = []
        self._finished.remove_old(header.unix_offset_s + started)
        self._current = self._open(header)
        self._current.publish()
        self._begun = started
        self._checkpoint_bytes = self._current.num_bytes

    @property
    def path(self) -> Path:
        """The current segment."""
        return self._current.path

    @property
    def num_bytes(self) -> int:
        """The size of all recordings in the folder."""
        return self._finished.num_bytes + sum(each.num_bytes for each in self._open_files)

    @property
    def is_full(self) -> bool:
        """Whether the current segment has reached its size or its age."""
        return (
            self._current.num_bytes - self._checkpoint_bytes >= self._limits.segment_bytes
            or self._now - self._begun >= self._limits.segment_age_s
        )

    def write(self, entries: Sequence[Entry]) -> None:
        """Write calls to the current segment.

        Raises:
            OSError: The disk fails.
            NoRoom: The open segments are larger than the limit.
        """
        for entry in entries:
            self._now = entry.now
            for event in entry.events if isinstance(entry, HandleCall) else ():
                if self._known.follow(event) and self._since is not None:
                    self._since.append(event)
        self._current.write(self._calls.encode(entries))

    def sync(self) -> None:
        """Wait until the disk has the calls."""
        self._current.sync()

    def begin_next(self, write_waiting: Callable[[], object]) -> None:
        """Begin the next segment.

        Args:
            write_waiting: Called again and again, to write calls that arrive meanwhile. Their
                events are the end of the checkpoint.

        Raises:
            OSError: The disk fails.
            NoRoom: The open segments are larger than the limit.
        """
        self._header = self._following_header()
        following = self._open(self._header)
        self._since = []
        for part in _parts(list(self._known.events())):
            self._write_checkpoint(following, CheckpointPart(self._now, tuple(part)))
            write_waiting()
        for part in _parts(self._since):
            self._write_checkpoint(following, CheckpointPart(self._now, tuple(part)))
        self._since = None
        self._write_checkpoint(following, CheckpointPart(self._now, (), is_last=True))
        self._finish_current(following)

    def end(self, reason: str) -> None:
        """Write why the recording ends.

        Raises:
            OSError: The disk fails.
        """
        self._current.write_end(self._calls.encode([End(reason)]))
        self._current.sync()

    def close(self) -> None:
        """Close the files."""
        for each in self._open_files:
            each.close()

    def _open(self, header: Header) -> SegmentFile:
        name = segment_name(self._time_of_day, header.segment)
        shown = header if self._anonymiser is None else self._anonymiser.header(header)
        opened = SegmentFile(self._folder / name, self._make_room)
        self._open_files.append(opened)
        opened.write_header(msgspec.json.encode(shown))
        return opened

    def _following_header(self) -> Header:
        following = replace(self._header, segment=self._header.segment + 1, checkpoint=True)
        changed = self._known.configuration
        if changed is None:
            return following
        configuration = recorded_configuration(changed.configuration)
        return replace(following, configuration=configuration, configuration_hash=changed.hash)

    def _write_checkpoint(self, following: SegmentFile, part: CheckpointPart) -> None:
        following.write(self._calls.encode([part]))

    def _finish_current(self, following: SegmentFile) -> None:
        before, unix_s = self._current, self._header.unix_offset_s + self._now
        before.write_end(self._calls.encode([End(CONTINUED)]))
        before.sync()
        following.publish()
        before.close()
        self._open_files.remove(before)
        self._current = following
        self._begun, self._checkpoint_bytes = self._now, following.num_bytes
        self._finished.add(before.path, before.num_bytes, unix_s)
        self._finished.remove_old(unix_s)

    def _make_room(self, num_bytes: int) -> None:
        open_bytes = self.num_bytes - self._finished.num_bytes
        self._finished.make_room(open_bytes + num_bytes + _END_BYTES)


def _parts(events: Sequence[Event]) -> Iterable[Sequence[Event]]:
    return (events[start : start + FRAME_SIZE] for start in range(0, len(events), FRAME_SIZE))
