"""Segments hold all calls, begin with what was known, and keep the limits of the folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from stowage.api.events import (
    AssignedPodSeen,
    BindSucceeded,
    ConfigurationChanged,
    CustomObjectGone,
    CustomObjectSeen,
    CustomResourceGone,
    Event,
    NodeGone,
    NodeSeen,
    PendingPodSeen,
)
from stowage.engine.journal import Entry, HandleCall, ScheduleCall
from stowage.recording.anonymiser import Anonymiser
from stowage.recording.frames import UnreadableRecording
from stowage.recording.header import Header
from stowage.recording.known_objects import KnownObjects
from stowage.recording.limits import RecordingLimits
from stowage.recording.reader import Recording, find_recording
from stowage.recording.segment_writer import SegmentWriter
from tests.support.builders import make_node, make_pod

HEADER = Header("0.1.0", 1_700_000_000.0, {"profiles": []}, "hash", 300.0)
LIMITS = RecordingLimits(80_000, 80.0)


def writer_in(
    folder: Path, limits: RecordingLimits = LIMITS, anonymiser: Anonymiser | None = None
) -> SegmentWriter:
    return SegmentWriter(folder, HEADER, 0.0, limits, anonymiser)


def handle(now: float, *events: Event) -> HandleCall:
    return HandleCall(now, events, ())


def nothing() -> None:
    """No call arrives."""


def write_segments(folder: Path, *segments: Sequence[Entry]) -> list[Path]:
    """Write these calls in a segment each; returns the files."""
    writer = writer_in(folder)
    for number, entries in enumerate(segments):
        if number:
            writer.begin_next(nothing)
        writer.write(entries)
    writer.end("enough")
    writer.close()
    return sorted(folder.iterdir())


def read(path: Path) -> tuple[list[Entry], str]:
    with Recording(path) as recording:
        return list(recording.calls()), recording.end


def nodes(*names: str) -> list[Event]:
    return [NodeSeen(make_node(name)) for name in names]


def test_the_segments_in_a_row_are_all_calls(tmp_path: Path) -> None:
    calls: list[list[Entry]] = [
        [handle(1.0, *nodes("a", "b")), ScheduleCall(2.0, 1, (0,), ())],
        [handle(3.0, NodeGone("a"))],
        [handle(4.0, *nodes("c"))],
    ]
    paths = write_segments(tmp_path, *calls)
    assert [path.name for path in paths] == [
        f"20231114T221320.000000Z-00000{number}.recording" for number in (1, 2, 3)
    ]
    assert find_recording(tmp_path) == paths[0]
    assert read(paths[0]) == ([entry for part in calls for entry in part], "enough")


def test_a_later_segment_begins_with_what_was_known(tmp_path: Path) -> None:
    bound = AssignedPodSeen(make_pod("p", node="b"))
    waiting = PendingPodSeen(make_pod("q"))
    first = handle(1.0, *nodes("a", "b"), PendingPodSeen(make_pod("p")), waiting, bound)
    outcome = handle(2.0, BindSucceeded("uid-p", "b"), NodeGone("a"))
    last = handle(4.0, *nodes("c"))
    paths = write_segments(tmp_path, [first, outcome], [handle(3.0, *nodes("d"))], [last])
    known = [*nodes("b", "d"), bound, waiting]
    assert read(paths[2]) == ([handle(3.0, *known), last], "enough")
    with Recording(paths[1]) as recording:
        header = recording.header
    assert (header.segment, header.checkpoint, header.is_repeatable) == (2, True, False)


def test_calls_that_arrive_during_a_checkpoint_are_in_the_segment_before(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    writer.write([handle(1.0, *nodes("a", "b"))])
    arriving: list[Entry] = [handle(2.0, NodeGone("a"), *nodes("c"), BindSucceeded("u", "b"))]

    def write_arriving() -> None:
        if arriving:
            writer.write([arriving.pop()])

    writer.begin_next(write_arriving)
    writer.write([handle(3.0)])
    writer.end("enough")
    writer.close()
    first, second = sorted(tmp_path.iterdir())
    assert [entry.now for entry in read(first)[0]] == [1.0, 2.0, 3.0]
    checkpoint, rest = read(second)[0]
    assert (checkpoint.now, rest) == (2.0, handle(3.0))
    known = KnownObjects()
    assert isinstance(checkpoint, HandleCall)
    assert all(known.follow(event) for event in checkpoint.events)
    assert list(known.events()) == nodes("b", "c")


def test_a_crash_during_a_checkpoint_loses_no_call(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    writer.write([handle(1.0, *nodes("a"))])

    def crash() -> None:
        writer.write([handle(2.0)])
        raise SystemExit

    with pytest.raises(SystemExit):
        writer.begin_next(crash)
    crashed = tmp_path.with_name("crashed")
    shutil.copytree(tmp_path, crashed)
    writer.close()
    first, partial = sorted(crashed.iterdir())
    assert partial.suffix == ".partial"
    assert read(find_recording(crashed)) == (
        [handle(1.0, *nodes("a")), handle(2.0)],
        "open: the process was killed, or it still records",
    )
    SegmentWriter(crashed, HEADER, 5.0, LIMITS, None).close()
    assert first.exists()
    assert not partial.exists()


def test_a_crash_before_the_name_says_that_segments_are_missing(tmp_path: Path) -> None:
    paths = write_segments(tmp_path, [handle(1.0)], [handle(2.0)])
    paths[1].unlink()
    assert read(paths[0]) == ([handle(1.0)], "the following segments are missing")


def filled(writer: SegmentWriter, check: Callable[[], None]) -> None:
    for number in range(400):
        name = os.urandom(50).hex()
        writer.write([handle(number / 100, *nodes(f"n{number % 7}"), NodeGone(name))])
        if writer.is_full:
            writer.begin_next(check)
        check()


def test_the_size_of_the_folder_is_never_exceeded(tmp_path: Path) -> None:
    limits = RecordingLimits(16_000, 1e6)
    writer = writer_in(tmp_path, limits)

    def check() -> None:
        size = sum(path.stat().st_size for path in tmp_path.iterdir())
        assert size == writer.num_bytes <= limits.max_bytes

    filled(writer, check)
    writer.end("enough")
    writer.close()
    paths = sorted(tmp_path.iterdir())
    assert len(paths) > 3
    assert "-000001." not in paths[0].name
    calls, end = read(find_recording(tmp_path))
    assert (calls[-1].now, end) == (3.99, "enough")
    assert isinstance(calls[0], HandleCall)
    assert sorted(calls[0].events, key=repr) == nodes(*(f"n{number}" for number in range(7)))


def test_segments_older_than_the_maximum_age_are_removed(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    begun = []
    for second in range(200):
        writer.write([handle(second)])
        if writer.is_full:
            writer.begin_next(nothing)
            begun.append(second)
    assert begun == [*range(10, 200, 10)]
    writer.end("enough")
    writer.close()
    calls = read(find_recording(tmp_path))[0]
    # When the last segment begins at 190 s, those that ended before 110 s are removed. The first
    # call is the checkpoint.
    assert [entry.now for entry in calls] == [100, *range(101, 200)]


def test_the_header_has_the_configuration_of_its_time(tmp_path: Path) -> None:
    changed = ConfigurationChanged("new", {"profiles": [1], "clientConnection": {"a": 1}})
    paths = write_segments(tmp_path, [handle(1.0)], [handle(2.0, changed)], [handle(3.0)])
    found = []
    for path in paths:
        with Recording(path) as recording:
            found.append((recording.header.configuration_hash, recording.header.configuration))
    assert found == [("hash", {"profiles": []})] * 2 + [("new", {"profiles": [1]})]


def test_checkpoints_have_objects_of_plugins(tmp_path: Path) -> None:
    resource, other = "foos.v1.example.com", "bars.v1.example.com"
    kept = CustomObjectSeen(resource, {"metadata": {"namespace": "d", "name": "kept"}})
    gone = CustomObjectSeen(resource, {"metadata": {"namespace": "d", "name": "gone"}})
    dropped = CustomObjectSeen(other, {"metadata": {"name": "x"}})
    removed = (CustomObjectGone(resource, "d", "gone"), CustomResourceGone(other))
    paths = write_segments(tmp_path, [handle(1.0, kept, gone, dropped, *removed)], [handle(2.0)])
    assert read(paths[1])[0] == [handle(1.0, kept), handle(2.0)]


def test_anonymous_segments_have_the_same_hashes(tmp_path: Path) -> None:
    writer = writer_in(tmp_path, anonymiser=Anonymiser())
    writer.write([handle(1.0, *nodes("savanna"))])
    writer.begin_next(nothing)
    writer.write([handle(2.0, NodeGone("savanna"))])
    writer.close()
    last = sorted(tmp_path.iterdir())[1]
    (checkpoint, rest) = read(last)[0]
    assert isinstance(checkpoint, HandleCall)
    assert isinstance(rest, HandleCall)
    known = KnownObjects()
    for event in (*checkpoint.events, *rest.events):
        known.follow(event)
    assert list(known.events()) == []
    assert "savanna" not in repr((checkpoint, rest))


def test_a_missing_segment_is_named(tmp_path: Path) -> None:
    paths = write_segments(tmp_path, *([handle(float(number))] for number in range(4)))
    paths[2].unlink()
    with pytest.raises(UnreadableRecording, match=f"{paths[2]}: this segment is missing"):
        Recording(paths[0])
    assert [entry.now for entry in read(paths[3])[0]] == [2.0, 3.0]


@pytest.mark.parametrize("num_bytes", [1, 20, 40])
def test_a_truncated_segment_before_others_is_named(tmp_path: Path, num_bytes: int) -> None:
    paths = write_segments(tmp_path, *([handle(float(number))] for number in range(3)))
    paths[1].write_bytes(paths[1].read_bytes()[:-num_bytes])
    with pytest.raises(UnreadableRecording, match=f"{paths[1]}: truncated: it ends before"):
        read(paths[0])
    assert read(paths[2])[1] == "enough"


def test_segments_of_one_recording_do_not_continue_another(tmp_path: Path) -> None:
    (first,) = write_segments(tmp_path, [handle(1.0)])
    later = SegmentWriter(tmp_path, HEADER, 9.0, LIMITS, None)
    later.write([handle(9.0)])
    later.end("later")
    later.close()
    assert read(first) == ([handle(1.0)], "enough")
    assert read(find_recording(tmp_path)) == ([handle(9.0)], "later")
