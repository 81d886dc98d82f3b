"""The replays of what the replicas recorded: a difference is a violation of the run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from stowage_benchmarks.chaos.replays import RECORDINGS, Replay, replay_all
from stowage_benchmarks.chaos.result import ChaosResult, this_machine
from tests.support.recorded_cluster import write_recording

DIFFERENCE = "error: call 7 differs: recorded AttemptResult({}), replayed AttemptResult({})"


def _result() -> ChaosResult:
    counts: dict[str, int] = {}
    return ChaosResult(
        *(this_machine(), 1, 5.0, 100, "plan", counts, counts, counts, counts, 25.0, 25.0),
        *([], 1.0, 100.0, 100.0, [], []),
    )


def test_equal_replays_are_no_violation() -> None:
    result = _result().with_replays([Replay("replica-a-0000", 10, instructions=3)])
    assert (result.violations, len(result.replays)) == ([], 1)


def test_a_difference_and_a_run_without_recordings_are_violations() -> None:
    differs = [Replay("replica-a-0000", 10, problem="call 3 differs")]
    assert _result().with_replays(differs).violations == [
        "replay of replica-a-0000: call 3 differs"
    ]
    assert _result().with_replays([]).violations == ["no replica left a recording"]


def test_a_recording_that_cannot_be_replayed_is_named(tmp_path: Path) -> None:
    folder = tmp_path / RECORDINGS / "replica-b-0001"
    folder.mkdir(parents=True)
    (folder / "x.recording").write_bytes(b"stowage recording 9\n")
    said: list[str] = []
    (replay,) = replay_all(tmp_path, said.append)
    assert (replay.process, replay.size, replay.calls) == ("replica-b-0001", 20, 0)
    assert "version 9 of the format" in replay.problem
    assert said == [f"replay of replica-b-0001: {replay.problem}"]


def test_a_recording_of_a_process_that_was_killed_before_its_first_call_is_no_problem(
    tmp_path: Path,
) -> None:
    folder = tmp_path / RECORDINGS / "replica-b-0001"
    folder.mkdir(parents=True)
    write_recording(folder / "x.recording", [])
    (replay,) = replay_all(tmp_path, lambda _text: None)
    assert (replay.problem, replay.end) == ("", "killed before the first call")


@pytest.mark.parametrize(
    ("recorded", "replayed", "end"),
    [
        ("message='PostFilter: MemoryError'", "message=''", "a plugin got no memory"),
        ("message=''", "message='PostFilter: MemoryError'", ""),
        ("message='MemoryError'", "message='other MemoryError'", ""),
    ],
)
def test_a_difference_is_no_problem_only_if_a_plugin_got_no_memory_when_it_was_recorded(
    recorded: str, replayed: str, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / RECORDINGS / "replica-b-0001").mkdir(parents=True)
    difference = DIFFERENCE.format(recorded, replayed)
    ended = subprocess.CompletedProcess([], 1, stdout="", stderr=difference)
    monkeypatch.setattr(subprocess, "run", lambda *_given, **_options: ended)
    (replay,) = replay_all(tmp_path, lambda _text: None)
    assert (replay.end, replay.problem) == (end, "" if end else difference)
