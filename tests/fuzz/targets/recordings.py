"""Files of recordings: damaged bytes, and valid frames with other contents."""

from __future__ import annotations

import asyncio
import io
import shutil
import tempfile
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from random import Random

import msgspec

from stowage.api.config.loading import InvalidConfiguration
from stowage.cli.replay.repetition import Repetition
from stowage.console.clusters.recorded import RecordedCluster
from stowage.console.clusters.source import SourceName
from stowage.engine.journal import Entry, ReplayDiverged
from stowage.recording.frames import FrameDecoder, FrameEncoder, UnreadableRecording
from stowage.recording.reader import Recording
from tests.fuzz.campaign import Finding
from tests.fuzz.mutations import mutated_bytes, mutated_tree
from tests.fuzz.targets.configuration import check_errors
from tests.support.builders import make_node, make_pod
from tests.support.consoles import default_frameworks
from tests.support.recorded_cluster import RecordedCluster as RecordedLife

MAX_MESSAGE = 1_000
_REPEATED = 10
"""One of this number of inputs is also repeated on an engine, which takes milliseconds."""


class RecordingTarget:
    """A recording: it is read up to a damaged frame, shown by the console, and repeated."""

    name = "recordings"

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="stowage-fuzz-"))
        self._path = self._folder / "one.recording"
        self._lock = asyncio.Lock()
        self._frameworks = default_frameworks()
        self._originals = [(data, self._entries_of(data)) for data in _files()]

    def make(self, rng: Random) -> bytes:
        data = rng.choice(_files())
        match rng.randrange(8):
            case 0:
                return data[: rng.randrange(len(data) + 1)]
            case 1:
                return mutated_bytes(rng, data, others=_files())
            case 2:
                return _with_header(rng, data)
            case 3:
                return _reframed(data, lambda frame: mutated_bytes(rng, frame))
            case _:
                return _reframed(data, lambda frame: _changed_calls(rng, frame))

    def run(self, given: bytes) -> str:
        try:
            entries = self._entries_of(given)
            self._check_prefix(given, entries)
            self._show()
            if zlib.crc32(given) % _REPEATED == 0:
                self._repeat()
        except InvalidConfiguration as invalid:
            check_errors(invalid)
            return "rejected"
        except (UnreadableRecording, ReplayDiverged) as error:
            text = str(error)
            # A replay that differs shows both instructions.
            if not text or (len(text) > MAX_MESSAGE and not isinstance(error, ReplayDiverged)):
                raise Finding(f"no message, or a long one: {text!r:.300}") from error
            return "rejected"
        return "accepted"

    def close(self) -> None:
        shutil.rmtree(self._folder)

    def _entries_of(self, data: bytes) -> Sequence[Entry]:
        self._path.write_bytes(data)
        with Recording(self._path) as recording:
            return list(recording.calls())

    def _check_prefix(self, data: bytes, entries: Sequence[Entry]) -> None:
        for original, all_entries in self._originals:
            if original.startswith(data) and list(entries) != all_entries[: len(entries)]:
                raise Finding("the beginning of a recording has other calls than the recording")

    def _show(self) -> None:
        name = SourceName("recording", "one", "--from one")
        RecordedCluster(name, self._path, lambda: self._frameworks, self._lock).read()

    def _repeat(self) -> None:
        with Recording(self._path) as recording:
            if recording.header.is_repeatable:
                Repetition(recording).run(None)


@lru_cache(maxsize=1)
def _files() -> tuple[bytes, ...]:
    """Small recordings: a pod that fits and one that waits for a node."""
    folder = Path(tempfile.mkdtemp(prefix="stowage-fuzz-"))
    try:
        return tuple(_recorded(number).write(folder / "r").read_bytes() for number in range(2))
    finally:
        shutil.rmtree(folder)


def _recorded(number: int) -> RecordedLife:
    life = RecordedLife(["small"], cpu="2")
    life.advance(1)
    life.create_pods([make_pod("fits", cpu="1", scheduler_name="stowage")])
    life.advance(1)
    if number:
        life.create_pods([make_pod("big", cpu="8", scheduler_name="stowage", priority=5)])
        life.advance(1)
        life.put_node(make_node("large", cpu="16", zone="a"))
        life.advance(60)
    return life


def _parts(data: bytes) -> tuple[bytes, list[bytes]]:
    """The header, and the contents of the frames."""
    decoder = FrameDecoder(io.BytesIO(data))
    return decoder.header(), list(decoder.frames())


def _joined(header: bytes, frames: Sequence[bytes]) -> bytes:
    encoder = FrameEncoder()
    return encoder.header(header) + b"".join(map(encoder.frame, frames))


def _with_header(rng: Random, data: bytes) -> bytes:
    header, frames = _parts(data)
    value = mutated_tree(rng, msgspec.json.decode(header))
    return _joined(msgspec.json.encode(value), frames)


def _reframed(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    header, frames = _parts(data)
    return _joined(header, [change(frames[0]), *frames[1:]])


def _changed_calls(rng: Random, frame: bytes) -> bytes:
    tree = mutated_tree(rng, msgspec.msgpack.decode(frame), ("now", "metadata", "spec", "type"))
    try:
        return msgspec.msgpack.encode(tree)
    except (OverflowError, ValueError, UnicodeEncodeError):
        return frame  # a number that the format does not have
