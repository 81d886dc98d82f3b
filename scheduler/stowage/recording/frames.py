r"""The file format: a magic line, then frames, each with its length and checksum.

::

    "stowage recording 1\n"
    length: uint32, CRC-32 of the payload: uint32, payload    (little-endian; as often as needed)

The payload of the first frame is the header as JSON. The payloads of all others together are one
raw DEFLATE stream, which is flushed at the end of each frame (``Z_SYNC_FLUSH``), so that each frame
can be read once it is complete, and compresses with what came before it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

MAGIC = b"stowage recording 1\n"
RECORDING_START = b"stowage recording "
"""The beginning of the magic line of any version."""
_PREFIX = struct.Struct("<II")
MAX_FRAME_BYTES = 2**30
"""Content of a frame. DEFLATE expands a thousandfold, so a small file could fill the memory; a call
with the objects of a large cluster has a third of this."""
_RAW_DEFLATE = -15
_MAX_LENGTH = 2**28
"""A longer frame is damaged: the recorder flushes long before."""
_FAST = 1
"""Level 6 makes recordings of a benchmark 16 % smaller and takes twice the time."""


class UnreadableRecording(ValueError):  # noqa: N818 - it names the finding
    """The bytes are no recording, one of another version, or damaged."""


def is_recording(path: Path) -> bool:
    """Whether a file begins as a recording of any version; a file that cannot be read does not."""
    try:
        with path.open("rb") as file:
            return file.read(len(RECORDING_START)) == RECORDING_START
    except OSError:
        return False


class FrameEncoder:
    """Makes the frames of one file."""

    def __init__(self) -> None:
        self._compressor = zlib.compressobj(_FAST, zlib.DEFLATED, _RAW_DEFLATE)

    def header(self, data: bytes) -> bytes:
        """The beginning of the file."""
        return MAGIC + _framed(data)

    def frame(self, data: bytes) -> bytes:
        """The next frame."""
        payload = self._compressor.compress(data) + self._compressor.flush(zlib.Z_SYNC_FLUSH)
        return _framed(payload)


def _framed(payload: bytes) -> bytes:
    return _PREFIX.pack(len(payload), zlib.crc32(payload)) + payload


class FrameDecoder:
    """Reads the frames of one file, up to the last complete one.

    Args:
        file: The file.
        max_frame_bytes: A frame with more content is damaged.

    Attributes:
        num_cut: Number of bytes of an incomplete frame at the end; known after the last frame.
    """

    def __init__(self, file: BinaryIO, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._file = file
        self._max_frame_bytes = max_frame_bytes
        self._decompressor = zlib.decompressobj(_RAW_DEFLATE)
        self.num_cut = 0

    def header(self) -> bytes:
        """The content of the first frame.

        Raises:
            UnreadableRecording: The file is no recording of this version, or has no header.
        """
        start = self._file.read(len(MAGIC))
        if not start.startswith(RECORDING_START[: len(start)]) or not start:
            raise UnreadableRecording("not a recording of Stowage")
        if start != MAGIC and len(start) == len(MAGIC):
            version = start.removeprefix(RECORDING_START).decode(errors="replace").strip()
            raise UnreadableRecording(
                f"recorded in version {version} of the format (expected version 1); "
                "use the version of Stowage that recorded it"
            )
        payload = self._payload(0)
        if payload is None:
            raise UnreadableRecording("truncated: it ends before the first call")
        return payload

    def frames(self) -> Iterator[bytes]:
        """The contents of the other frames.

        Raises:
            UnreadableRecording: A complete frame is damaged.
        """
        number = 1
        while (payload := self._payload(number)) is not None:
            yield self._expanded(number, payload)
            number += 1

    def _expanded(self, number: int, payload: bytes) -> bytes:
        try:
            content = self._decompressor.decompress(payload, self._max_frame_bytes)
        except zlib.error as error:
            raise UnreadableRecording(f"frame {number} is damaged: {error}") from error
        if self._decompressor.unconsumed_tail:
            raise UnreadableRecording(
                f"frame {number} is damaged: it expands to more than {self._max_frame_bytes} bytes"
            )
        return content

    def _payload(self, number: int) -> bytes | None:
        """The next complete payload; None at the end of the file."""
        prefix = self._file.read(_PREFIX.size)
        if len(prefix) < _PREFIX.size:
            self.num_cut = len(prefix)
            return None
        length, checksum = _PREFIX.unpack(prefix)
        if length > _MAX_LENGTH:
            raise UnreadableRecording(f"{_name(number)} is damaged: {length} bytes are too many")
        payload = self._file.read(length)
        if len(payload) < length:
            self.num_cut = len(prefix) + len(payload)
            return None
        if zlib.crc32(payload) != checksum:
            raise UnreadableRecording(f"{_name(number)} is damaged: its checksum differs")
        return payload


def _name(number: int) -> str:
    return f"frame {number}" if number else "the header"
