"""The recorder writes complete recordings within its limits, and ends them at failures."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from stowage.api.events import NodeGone, NodeSeen
from stowage.engine.journal import HandleCall
from stowage.recording import recorder as module
from stowage.recording.frames import UnreadableRecording
from stowage.recording.header import Header
from stowage.recording.limits import RecordingLimits
from stowage.recording.reader import Recording, find_recording
from stowage.recording.recorder import Recorder
from tests.support.builders import make_node

HEADER = Header("0.1.0", 1_700_000_000.0, {}, "hash", 300.0)
LIMITS = RecordingLimits(2**20, 3600.0)


def call(now: float, name: str = "n") -> HandleCall:
    return HandleCall(now, (NodeGone(name),), ())


class Recorded:
    """A recorder whose end can be waited for."""

    def __init__(
        self, folder: Path, limits: RecordingLimits = LIMITS, started: float = 0.0
    ) -> None:
        self.reason = ""
        self._ended = threading.Event()
        self.recorder = Recorder(folder, HEADER, started, limits, self._end)
        self.path = self.recorder.path

    def _end(self, reason: str) -> None:
        self.reason = reason
        self._ended.set()

    def wait_for_end(self) -> str:
        assert self._ended.wait(10)
        return self.reason

    def read(self) -> tuple[list[float], str]:
        """The times of the recorded calls, and why the recording ends."""
        with Recording(self.path) as recording:
            times = [entry.now for entry in recording.calls()]
            return times, recording.end


@pytest.fixture(autouse=True)
def _recorders_end() -> Iterator[None]:
    yield
    for thread in threading.enumerate():
        if thread.name == "recorder":
            thread.join(10)
            assert not thread.is_alive()


def test_all_calls_are_in_the_file_after_close(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path / "new" / "folder")
    for number in range(3_000):
        recorded.recorder.record(call(number))
    recorded.recorder.close()
    assert recorded.read() == ([*range(3_000)], "the scheduler stopped")
    size = sum(path.stat().st_size for path in recorded.path.parent.iterdir())
    assert recorded.recorder.num_bytes == size
    assert recorded.reason == ""
    assert find_recording(tmp_path / "new" / "folder") == recorded.path


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o640), (0o077, 0o600)])
def test_others_of_the_machine_cannot_read_a_recording(
    tmp_path: Path, umask: int, mode: int
) -> None:
    before = os.umask(umask)
    try:
        recorded = Recorded(tmp_path)
    finally:
        os.umask(before)
    recorded.recorder.close()
    assert recorded.path.stat().st_mode & 0o777 == mode


def test_a_recording_without_an_end_says_so(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path)
    recorded.recorder.record(call(1.0))
    recorded.recorder.close()
    path = recorded.recorder.path
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    times, end = recorded.read()
    assert times == [1.0]
    assert end.startswith("cut: the last ")


def test_a_recording_goes_on_in_new_segments_within_its_size(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, RecordingLimits(100_000, 3600.0))
    for number in range(20_000):
        recorded.recorder.record(call(number, os.urandom(20).hex()))
    recorded.recorder.close()
    assert recorded.reason == ""
    paths = sorted(tmp_path.iterdir())
    assert sum(path.stat().st_size for path in paths) == recorded.recorder.num_bytes <= 100_000
    assert len(paths) > 2
    with Recording(paths[0]) as recording:
        assert recording.header.segment > 1
        times = [entry.now for entry in recording.calls()]
        assert recording.end == "the scheduler stopped"
    assert times == [*range(20_000 - len(times), 20_000)]


def test_a_size_that_does_not_hold_the_objects_ends_the_recording(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, RecordingLimits(5_000, 3600.0))
    nodes = [NodeSeen(make_node(os.urandom(20).hex())) for _ in range(1_000)]
    recorded.recorder.record(HandleCall(1.0, tuple(nodes), ()))
    assert "the maximum size of 5000 bytes is too small" in recorded.wait_for_end()
    assert not recorded.recorder.is_recording
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 5_000
    assert recorded.read()[1].startswith("open")


def test_too_many_waiting_calls_end_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_WAITING", 100)
    recorded = Recorded(tmp_path)
    for number in range(300):
        recorded.recorder.record(call(number))
    assert "too slow" in recorded.wait_for_end()
    times, end = recorded.read()
    assert times == [*range(len(times))]
    assert "too slow" in end


def test_a_full_disk_ends_the_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    recorded = Recorded(tmp_path)
    monkeypatch.setattr(os, "fsync", fail)
    recorded.recorder.record(call(1.0))
    recorded.recorder.close()
    assert "No space left on device" in recorded.wait_for_end()
    assert not recorded.recorder.is_recording
    recorded.recorder.record(call(2.0))


def test_a_new_recording_removes_old_ones_beyond_the_limits(tmp_path: Path) -> None:
    now = HEADER.unix_offset_s
    for name, age_s, size in (("1", 4000.0, 10), ("2", 30.0, 6_000), ("3", 20.0, 300)):
        path = tmp_path / f"{name}.recording"
        path.write_bytes(b"x" * size)
        os.utime(path, (now - age_s, now - age_s))
    (tmp_path / "other").write_bytes(b"x" * 5_000)
    (tmp_path / "4.recording.partial").write_bytes(b"x")
    recorded = Recorded(tmp_path, RecordingLimits(6_000, 3600.0))
    recorded.recorder.record(call(1.0))
    recorded.recorder.close()
    names = {path.name for path in tmp_path.iterdir()} - {recorded.recorder.path.name}
    assert names == {"3.recording", "other"}
    assert recorded.read()[0] == [1.0]


def test_a_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableRecording, match="expected a recording"):
        find_recording(tmp_path)


def test_a_header_without_the_field_has_decisions() -> None:
    text = msgspec.json.encode(HEADER).replace(b',"decisions":true', b"")
    assert b"decisions" not in text
    assert msgspec.json.decode(text, type=Header) == HEADER
