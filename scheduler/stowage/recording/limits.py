"""Keeps the files of a folder within the limits of size and age."""

from __future__ import annotations

from collections import deque
from itertools import chain
from pathlib import Path

import msgspec

from stowage.recording.names import PARTIAL, PATTERN, recordings_in

_NUM_SEGMENTS = 8
"""Number of segments in the size, and in the age, of a folder that is full."""


class RecordingLimits(msgspec.Struct, frozen=True):
    """Limits of all recordings in a folder together.

    Attributes:
        max_bytes: Their size.
        max_age_s: A segment is removed when its last call is older.
    """

    max_bytes: int
    max_age_s: float

    @classmethod
    def of(cls, max_bytes: int | None, max_age_s: float | None) -> RecordingLimits:
        """The limits; 1 GiB and a day where none is given."""
        return cls(max_bytes or 2**30, max_age_s or 86_400.0)

    @property
    def segment_bytes(self) -> int:
        """A segment ends after calls of this size."""
        return self.max_bytes // _NUM_SEGMENTS

    @property
    def segment_age_s(self) -> float:
        """A segment ends after this time."""
        return self.max_age_s / _NUM_SEGMENTS


class NoRoom(Exception):  # noqa: N818 - it names the finding
    """The open segments alone are larger than the limit."""


class _Finished(msgspec.Struct, frozen=True):
    path: Path
    num_bytes: int
    ended: float


class FinishedSegments:
    """The segments of a folder that are not written any more, oldest first.

    Args:
        folder: The folder; segments of earlier processes count, and what they left incomplete is
            removed.
        limits: The limits.

    Attributes:
        num_bytes: The size of all of them.

    Raises:
        OSError: The folder cannot be read, or a file cannot be removed.
    """

    def __init__(self, folder: Path, limits: RecordingLimits) -> None:
        self._limits = limits
        self._segments: deque[_Finished] = deque()
        self.num_bytes = 0
        for path in folder.glob(PATTERN + PARTIAL):
            path.unlink()
        for path in chain.from_iterable(recordings_in(folder)):
            status = path.stat()
            self.add(path, status.st_size, status.st_mtime)

    def add(self, path: Path, num_bytes: int, ended: float) -> None:
        """Add the newest one, which ended at this time in seconds since 1970."""
        self._segments.append(_Finished(path, num_bytes, ended))
        self.num_bytes += num_bytes

    def remove_old(self, unix_s: float) -> None:
        """Remove those beyond the maximum age at this time."""
        while self._segments and self._segments[0].ended < unix_s - self._limits.max_age_s:
            self._remove_oldest()

    def make_room(self, open_bytes: int) -> None:
        """Remove the oldest ones until all of them and the open ones keep the maximum size.

        Raises:
            NoRoom: The open ones do not.
        """
        while self.num_bytes + open_bytes > self._limits.max_bytes:
            if not self._segments:
                raise NoRoom(
                    f"the maximum size of {self._limits.max_bytes} bytes is too small: "
                    "it does not hold the objects of the cluster twice"
                )
            self._remove_oldest()

    def _remove_oldest(self) -> None:
        oldest = self._segments.popleft()
        oldest.path.unlink(missing_ok=True)
        self.num_bytes -= oldest.num_bytes
