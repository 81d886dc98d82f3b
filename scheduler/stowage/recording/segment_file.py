"""Writes the file of one segment."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from stowage.recording.frames import FrameEncoder
from stowage.recording.names import PARTIAL


class SegmentFile:
    """A new file, which gets its name with `publish`.

    Args:
        path: The file.
        make_room: Called before a frame of this number of bytes is written.

    Attributes:
        num_bytes: The size.

    Raises:
        OSError: The file cannot be made.
    """

    def __init__(self, path: Path, make_room: Callable[[int], None]) -> None:
        self.path = path
        self.num_bytes = 0
        self._make_room = make_room
        self._partial = path.with_name(path.name + PARTIAL)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        # Others of the machine cannot read it; the umask may forbid more.
        self._file = os.fdopen(os.open(self._partial, flags, 0o640), "wb", buffering=0)
        self._frames = FrameEncoder()

    def write_header(self, data: bytes) -> None:
        """Write the beginning, whether there is room or not."""
        self._append(self._frames.header(data))

    def write(self, data: bytes) -> None:
        """Write the next frame."""
        framed = self._frames.frame(data)
        self._make_room(len(framed))
        self._append(framed)

    def write_end(self, data: bytes) -> None:
        """Write the last frame, for which there is always room."""
        self._append(self._frames.frame(data))

    def sync(self) -> None:
        """Wait until the disk has everything."""
        os.fsync(self._file.fileno())

    def publish(self) -> None:
        """Give the file its name."""
        self.sync()
        self._partial.rename(self.path)

    def close(self) -> None:
        """Close the file; without its name, it is removed."""
        self._file.close()
        self._partial.unlink(missing_ok=True)

    def _append(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        self.num_bytes += len(data)
