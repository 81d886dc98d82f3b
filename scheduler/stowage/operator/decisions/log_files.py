"""The files of a decision log: a new one after some size or time, and only the newest are kept."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec

PATTERN = "decisions-*.jsonl"


class DecisionLogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a decision log.

    Attributes:
        directory: Where the files are; it is made if it does not exist.
        max_file_bytes: The size after which a new file begins.
        max_file_age_s: The age after which a new file begins.
        max_files: The number of files that are kept, including the one that is written.
    """

    directory: Path
    max_file_bytes: int = 100 * 2**20
    max_file_age_s: float = 86_400.0
    max_files: int = 10


class LogFiles:
    """Writes lines to the newest file; not thread-safe.

    A file is named after the time of its first line, so names sort by time. A file is opened for
    the first line only. If a write fails, the file ends with the last complete line again.
    """

    def __init__(self, options: DecisionLogOptions) -> None:
        self._options = options
        self._descriptor: int | None = None
        self._size = 0
        self._opened_ns = 0

    def write(self, lines: bytes, unix_ns: int) -> None:
        """Append complete lines.

        Args:
            lines: The lines.
            unix_ns: The time of the first one.

        Raises:
            OSError: They cannot be written; none of them is in the file.
        """
        if self._descriptor is not None and self._is_full(len(lines), unix_ns):
            self.close()
        if self._descriptor is None:
            self._descriptor = self._open(unix_ns)
        try:
            _write_all(self._descriptor, lines)
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(lines)

    def close(self) -> None:
        """Close the file; the next line begins a new one."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _is_full(self, num_more: int, unix_ns: int) -> bool:
        options = self._options
        is_too_long = self._size > 0 and self._size + num_more > options.max_file_bytes
        return is_too_long or unix_ns - self._opened_ns >= options.max_file_age_s * 1e9

    def _open(self, unix_ns: int) -> int:
        directory = self._options.directory
        directory.mkdir(parents=True, exist_ok=True)
        self._remove_oldest()
        time = datetime.fromtimestamp(unix_ns // 1_000 / 1e6, UTC)
        path = directory / f"decisions-{time:%Y%m%dT%H%M%S.%fZ}.jsonl"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        descriptor = os.open(path, flags, 0o640)
        self._size, self._opened_ns = os.fstat(descriptor).st_size, unix_ns
        return descriptor

    def _remove_oldest(self) -> None:
        """Make room for one more file."""
        files = sorted(self._options.directory.glob(PATTERN))
        for path in files[: max(0, len(files) - self._options.max_files + 1)]:
            path.unlink(missing_ok=True)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
