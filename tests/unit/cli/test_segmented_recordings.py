"""The commands read the segments of a recording as one, from the oldest that is there."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from stowage.cli.main import app
from stowage.engine.journal import Entry
from stowage.recording.header import Header
from stowage.recording.limits import RecordingLimits
from stowage.recording.segment_writer import SegmentWriter
from tests.support.builders import make_node, make_pod
from tests.support.recorded_cluster import DEFAULTS, START_S, RecordedCluster

HEADER = Header("0.0.1", START_S, DEFAULTS, "", 300.0)
EARLY, LATE = "1970-01-12T13:47:00Z", "1970-01-12T13:50:00Z"


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(map(str, arguments)), terminal_width=200)
    return done.exit_code, done.stdout, done.stderr


def write_segments(folder: Path, entries: list[Entry], begins: list[float]) -> list[Path]:
    """Write calls; a segment begins with the first call from each of these times on."""
    writer = SegmentWriter(folder, HEADER, 0.0, RecordingLimits(2**30, 1e9), None)
    left = list(begins)
    for entry in entries:
        if left and entry.now >= left[0]:
            left.pop(0)
            writer.begin_next(lambda: None)
        writer.write([entry])
    writer.end("enough")
    writer.close()
    return sorted(folder.iterdir())


@pytest.fixture
def segments(tmp_path: Path) -> list[Path]:
    """A pod waits for 100 s until a node is added; then another pod gets the rest of it."""
    cluster = RecordedCluster(("small",), cpu="1")
    cluster.create_pods([make_pod("big", cpu="2", scheduler_name="stowage")])
    cluster.advance(100.0)
    cluster.put_node(make_node("large", cpu="3"))
    cluster.advance(60.0)
    cluster.create_pods([make_pod("late", cpu="1", scheduler_name="stowage")])
    cluster.advance(60.0)
    folder = tmp_path / "recordings"
    folder.mkdir()
    return write_segments(folder, list(cluster.journal.entries), [50.0, 150.0])


def test_the_segments_in_a_row_are_repeated_and_compared(segments: list[Path]) -> None:
    assert len(segments) == 3
    status, out, err = run("replay", segments[0].parent, "-o", "json")
    assert (status, err) == (0, "")
    report = msgspec.json.decode(out)
    assert (report["bound"], report["nodes"], report["end"]) == (2, 2, "enough")
    found = msgspec.json.decode(run("replay", segments[0], "--until", "late", "-o", "json")[1])
    assert found["node"] == "large"


def test_a_replay_from_a_checkpoint_decides_by_itself(segments: list[Path]) -> None:
    segments[0].unlink()
    status, out, err = run("replay", segments[0].parent, "-o", "json")
    assert (status, err) == (0, "")
    answer = msgspec.json.decode(out)
    assert [each["name"] for each in answer["lives"]] == ["recorded", "replayed"]
    assert [each["placed"] for each in answer["lives"]] == [2, 2]
    assert (answer["pods"], answer["differing"]) == (2, [])
    assert any("begins with the checkpoint of segment 2" in note for note in answer["notes"])
    early = msgspec.json.decode(run("replay", segments[1], "--at", EARLY, "-o", "json")[1])
    assert [each["placed"] for each in early["lives"]] == [0, 0]


def test_other_weights_are_compared_from_a_checkpoint(segments: list[Path]) -> None:
    weights = ("--weights", "NodeResourcesFit=5")
    status, out, _ = run("replay", segments[2], *weights, "-o", "json")
    answer = msgspec.json.decode(out)
    assert (status, answer["pods"]) == (0, 2)
    # The other pod has its node in the checkpoint.
    assert [each["placed"] for each in answer["lives"]] == [1, 1, 1]


def test_the_cluster_of_a_checkpoint_is_asked_about(segments: list[Path]) -> None:
    segments[0].unlink()
    ask = ("explain", "pod", "big", "--from", segments[0].parent, "-o", "json")
    before = msgspec.json.decode(run(*ask, "--at", EARLY)[1])
    assert (before["decision"]["outcome"], before["decision"]["numNodes"]) == ("Unschedulable", 1)
    assert msgspec.json.decode(run(*ask, "--at", LATE)[1])["node"] == "large"
    late = ("explain", "pod", "late", "--from", segments[2], "--until", "late", "-o", "json")
    found = msgspec.json.decode(run(*late)[1])
    assert (found.get("node", ""), found["decision"]["best"]) == ("", ["large"])


def test_a_pod_is_not_explained_by_decisions_that_are_not_known(segments: list[Path]) -> None:
    status, out, err = run("replay", segments[1], "--until", "late")
    assert (status, out) == (1, "")
    assert "the recording begins with a checkpoint" in err
    assert f"stowage explain pod late --from {segments[1]} --until late" in err


@pytest.mark.parametrize("question", ["replay", "explain node large --from"])
def test_a_missing_and_a_truncated_segment_are_named(segments: list[Path], question: str) -> None:
    whole = segments[1].read_bytes()
    segments[1].write_bytes(whole[:-5])
    status, out, err = run(*question.split(), segments[0].parent)
    assert (status, out) == (1, "")
    assert f"error: {segments[1]}: truncated: it ends before the next segment begins" in err
    segments[1].write_bytes(whole[:100])
    assert f"{segments[1]}: truncated: it ends before" in run(*question.split(), segments[0])[2]
    segments[1].unlink()
    status, out, err = run(*question.split(), segments[0].parent)
    assert (status, out) == (1, "")
    assert f"error: {segments[1]}: this segment is missing; begin with " in err


def test_a_checkpoint_that_is_cut_is_no_cluster(segments: list[Path]) -> None:
    path = segments[2]
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 4])
    for question in ("replay", "explain node large --from"):
        status, out, err = run(*question.split(), path)
        assert (status, out) == (1, "")
        assert f"error: {path}: truncated: " in err
