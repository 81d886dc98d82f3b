"""A file of results, a line each, written as they come and read to resume a sweep.

The first line names the format; each other line is an `Outcome` as JSON. The last line of a key is
valid. A line is on the disk (``fsync``) before the next result is taken: an experiment takes
seconds, an ``fsync`` milliseconds. A line that was cut by a crash or a full disk has no newline; it
is removed when the file is opened again.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from stowage.experiments.experiment import Outcome

FORMAT = "stowage results 1"


class UnusableResults(Exception):  # noqa: N818 - it names the finding
    """The file holds no results, or another process writes to it; the message names the file."""


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    format: str


_HEAD = msgspec.json.encode(_Head(FORMAT))


class ResultsFile:
    """Results on disk; created if it does not exist.

    Args:
        path: The file.

    Attributes:
        outcomes: Key -> how the experiment ended, as of the opening of the file.

    Raises:
        UnusableResults: The file is not one of results, or another sweep has it open.
        OSError: The file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self._lock()
            content = path.read_bytes()
            self._size = content.rfind(b"\n") + 1
            if not self._size and not _HEAD.startswith(content):
                raise self._not_results()  # the file of somebody else must not be cut
            self.outcomes = self._read(content[: self._size])
            os.ftruncate(self._descriptor, self._size)
            if not self._size:
                self._write(_HEAD)
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, outcome: Outcome) -> None:
        """Add a result; it is on the disk when this returns.

        Raises:
            OSError: It cannot be written; the file is as before.
        """
        self._write(msgspec.json.encode(outcome))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UnusableResults(f"{self._path}: another sweep writes to this file") from error

    def _read(self, content: bytes) -> dict[str, Outcome]:
        lines = content.splitlines()
        if lines and not _is_head(lines[0]):
            raise self._not_results()
        outcomes = {}
        for number, line in enumerate(lines[1:], start=2):
            try:
                outcome = msgspec.json.decode(line, type=Outcome)
            except msgspec.DecodeError as error:
                raise UnusableResults(
                    f"{self._path}:{number}: expected a result; {error}"
                ) from error
            outcomes[outcome.key] = outcome
        return outcomes

    def _not_results(self) -> UnusableResults:
        return UnusableResults(f"{self._path}:1: expected a file of results of stowage")

    def _write(self, line: bytes) -> None:
        rest = memoryview(line + b"\n")
        try:
            while rest:
                position = self._size + len(line) + 1 - len(rest)
                rest = rest[os.pwrite(self._descriptor, rest, position) :]
            os.fsync(self._descriptor)
        except OSError as error:
            os.ftruncate(self._descriptor, self._size)
            raise OSError(error.errno, error.strerror, str(self._path)) from error
        self._size += len(line) + 1


def _is_head(line: bytes) -> bool:
    try:
        return msgspec.json.decode(line, type=_Head).format == FORMAT
    except msgspec.DecodeError:
        return False
