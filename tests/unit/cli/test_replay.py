"""``stowage replay`` names what is wrong with a recording, and the first difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.config.loading import load_configuration, to_builtins
from stowage.api.events import DeviceObjectSeen, NodeSeen, PendingPodSeen
from stowage.api.instructions import AttemptResult, BindClaims, BindPod
from stowage.cli.main import app
from stowage.cli.profiles import make_frameworks
from stowage.engine import Journal, make_engine
from stowage.engine.journal import Entry, HandleCall, ScheduleCall
from stowage.plugins import in_tree_registry
from stowage.recording.calls import CallEncoder, End
from stowage.recording.frames import FrameEncoder
from stowage.recording.header import Header
from tests.support.builders import make_node, make_pod
from tests.support.device_builders import (
    device,
    make_claim,
    make_class,
    make_slice,
    pod_with_claims,
)


def recorded_calls() -> list[Entry]:
    """Two attempts of a pod, the second of which succeeds, and one of another pod in between."""
    journal = Journal()
    engine = make_engine(
        make_frameworks(load_configuration()), lambda num_ties: num_ties - 1, journal=journal
    )
    engine.handle([NodeSeen(make_node("small", cpu="1"))], 0.0)
    names = ("first", "other")
    first, other = (make_pod(name, cpu="2", scheduler_name="stowage") for name in names)
    engine.handle([PendingPodSeen(first), PendingPodSeen(other)], 1.0)
    engine.schedule(2.0, 2)
    engine.handle([NodeSeen(make_node(name, cpu="2")) for name in ("a", "b")], 100.0)
    engine.schedule(101.0, 2)
    return list(journal.entries)


def write(path: Path, entries: list[Entry], gates: dict[str, bool] | None = None) -> Path:
    configuration = msgspec.to_builtins(to_builtins(load_configuration()), enc_hook=str)
    header = Header("0.0.1", 1_000_000.0, configuration, "", 300.0, feature_gates=gates or {})
    calls, frames = CallEncoder(), FrameEncoder()
    data = frames.header(msgspec.json.encode(header))
    data += frames.frame(calls.encode(entries)) + frames.frame(calls.encode([End("enough")]))
    path.write_bytes(data)
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["replay", *map(str, arguments)])
    return done.exit_code, done.stdout, done.stderr


def test_a_replay_has_the_feature_gates_of_the_recording(tmp_path: Path) -> None:
    gates = parse_feature_gates(["AllBeta=false"])
    journal = Journal()
    frameworks = make_frameworks(load_configuration(), in_tree_registry(gates))
    engine = make_engine(frameworks, lambda _num_ties: 0, journal=journal)
    pod = make_pod("p", scheduler_name="stowage", host_network=True, host_users=False)
    engine.handle([NodeSeen(make_node("declares-nothing")), PendingPodSeen(pod)], 0.0)
    assert BindPod in map(type, engine.schedule(1.0, 1))
    entries = list(journal.entries)
    assert run(write(tmp_path / "off", entries, dict(gates.written)))[0] == 0
    assert run(write(tmp_path / "on", entries))[0] == 1


def test_an_equal_replay_is_reported(tmp_path: Path) -> None:
    status, out, err = run(write(tmp_path / "r", recorded_calls()), "-o", "json")
    assert (status, err) == (0, "")
    report = msgspec.json.decode(out)
    assert report["attempts"] == {"scheduled": 2, "unschedulable": 2}
    assert (report["calls"], report["nodes"], report["end"]) == (5, 3, "enough")
    assert report["started"] == "1970-01-12T13:46:40.000000Z"


def test_a_claim_whose_annotations_are_not_recorded_is_allocated_equally_and_explained(
    tmp_path: Path,
) -> None:
    claim = make_claim("c")
    applied = replace(claim, metadata=replace(claim.metadata, annotations={"applied-by": "me"}))
    journal = Journal()
    engine = make_engine(
        make_frameworks(load_configuration()), lambda _num_ties: 0, journal=journal
    )
    devices = (make_class(), make_slice("n", [device("gpu-0")]), applied)
    seen = [DeviceObjectSeen(each) for each in devices]
    pod = pod_with_claims("p", "c", scheduler_name="stowage")
    engine.handle([NodeSeen(make_node("n")), *seen, PendingPodSeen(pod)], 0.0)
    assert BindClaims in map(type, engine.schedule(1.0, 1))
    path = write(tmp_path / "r", list(journal.entries))
    assert run(path)[::2] == (0, "")
    explained = msgspec.json.decode(run(path, "--until", "p", "-o", "json")[1])
    assert (explained["node"], explained["decision"]["outcome"]) == ("n", "Scheduled")


def test_a_pod_is_explained_as_of_its_last_attempt_before_a_time(tmp_path: Path) -> None:
    path = write(tmp_path / "r", recorded_calls())
    last = msgspec.json.decode(run(path, "--until", "first", "-o", "json")[1])
    assert (last["node"], last["decision"]["outcome"]) == ("b", "Scheduled")
    assert "attempt 2 (scheduled), repeated from a recording of Stowage 0.0.1" in last["basis"]
    early = ("--until", "default/first", "--at", "1970-01-12T13:47:00Z", "-o", "json")
    before = msgspec.json.decode(run(path, *early)[1])
    assert (before["decision"]["outcome"], before["decision"]["numNodes"]) == ("Unschedulable", 1)


def test_the_attempts_after_the_explained_one_have_not_happened(tmp_path: Path) -> None:
    path = write(tmp_path / "r", recorded_calls())
    first = msgspec.json.decode(run(path, "--until", "first", "-o", "json")[1])
    assert sorted(first["decision"]["best"]) == ["a", "b"]
    other = msgspec.json.decode(run(path, "--until", "other", "-o", "json")[1])
    assert other["decision"]["best"] == ["a"]


def test_a_differing_instruction_is_named(tmp_path: Path) -> None:
    entries = recorded_calls()
    last = entries[-1]
    changed = tuple(
        replace(each, node_name="elsewhere") if isinstance(each, BindPod) else each
        for each in last.instructions
    )
    entries[-1] = replace(last, instructions=changed)
    status, out, err = run(write(tmp_path / "r", entries))
    assert (status, out) == (1, "")
    assert "1970-01-12T13:48:21.000000Z: call 4 (schedule at 101.000000 s) differs: in" in err
    difference = "recorded BindPod(node_name='elsewhere'), replayed BindPod(node_name='b')"
    assert f"about pod default/first: {difference}\n" in err


def test_another_pod_than_the_recorded_one_is_named_without_its_whole_attempt(
    tmp_path: Path,
) -> None:
    entries = recorded_calls()
    first, *others = entries[2].instructions
    assert isinstance(first, AttemptResult)
    another = replace(first.pod, name="another", uid="uid-another")
    changed = replace(first, pod=another, attempts=first.attempts + 1)
    entries[2] = replace(entries[2], instructions=(changed, *others))
    err = run(write(tmp_path / "r", entries))[2]
    difference = (
        "recorded AttemptResult(pod=default/another), replayed AttemptResult(pod=default/first)"
    )
    assert difference in err


@pytest.mark.parametrize("is_recorded", [True, False], ids=["too many", "too few"])
def test_an_instruction_that_only_one_of_both_gives_is_named_with_its_pod(
    is_recorded: bool, tmp_path: Path
) -> None:
    entries = recorded_calls()
    given = entries[-1].instructions
    (bind,) = [each for each in given if isinstance(each, BindPod) and each.pod.name == "other"]
    others = (*given, bind) if is_recorded else given[:-1]
    entries[-1] = replace(entries[-1], instructions=others)
    err = run(write(tmp_path / "r", entries))[2]
    number = min(len(given), len(others))
    last: Any = bind if is_recorded else given[-1]
    shown = (
        f"recorded {last!r}, replayed None" if is_recorded else f"recorded None, replayed {last!r}"
    )
    assert f"differs: instruction {number} about pod default/{last.pod.name}: {shown}" in err


def test_a_tie_that_does_not_occur_is_named(tmp_path: Path) -> None:
    entries = recorded_calls()
    assert isinstance(entries[-1], ScheduleCall)
    entries[-1] = replace(entries[-1], choices=(*entries[-1].choices, 0))
    status, _, err = run(write(tmp_path / "r", entries))
    assert (status, "1 of the recorded ties between nodes did not occur" in err) == (1, True)


def test_a_missing_event_is_a_difference(tmp_path: Path) -> None:
    entries = recorded_calls()
    assert isinstance(entries[3], HandleCall)
    entries[3] = replace(entries[3], events=entries[3].events[:1])
    assert run(write(tmp_path / "r", entries))[0] == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"kind: List\n", "not a recording", id="foreign"),
        pytest.param(b"stowage recording 9\n", "recorded in version 9", id="newer"),
        pytest.param(b"stowage recording 1\n\x05", "ends before the first call", id="truncated"),
        pytest.param(
            b"stowage recording 1\n" + bytes(4096),
            "the header is damaged: Input data was truncated (expected the JSON",
            id="zeroed",
        ),
    ],
)
def test_an_unreadable_recording_is_named(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "x.recording"
    path.write_bytes(data)
    status, out, err = run(tmp_path)
    assert (status, out) == (1, "")
    assert f"error: {path}: " in err
    assert message in err


def test_damage_and_unknown_entries_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "r", recorded_calls())
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert "frame 2 is damaged: its checksum differs" in run(path)[2]
    frames = FrameEncoder()
    header = msgspec.json.encode(Header("9.0", 0.0, {}, "", 300.0))
    unknown = frames.frame(msgspec.msgpack.encode([["later", 1.0]]))
    path.write_bytes(frames.header(header) + unknown)
    status, out, err = run(path, "--until", "p")
    assert (status, out) == (1, "")
    assert "recorded by Stowage 9.0, which this version cannot read" in err


def test_a_pod_without_an_attempt_is_named(tmp_path: Path) -> None:
    status, out, err = run(write(tmp_path / "r", recorded_calls()), "--until", "missing")
    assert (status, out) == (1, "")
    assert "has no attempt of pod default/missing\n" in err
    at = ("--at", "1970-01-12T13:46:41Z")
    status, _, err = run(tmp_path / "r", "--until", "first", *at)
    assert (status, "of pod default/first up to 1970-01-12T13:46:41.000000Z\n" in err) == (1, True)


def test_a_time_before_the_recording_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "r", recorded_calls())
    status, out, err = run(path, "--at", "1970-01-12T13:46:39Z")
    assert (status, out) == (1, "")
    assert f"error: {path}: it begins at 1970-01-12T13:46:40.000000Z, expected a later --at" in err


def test_a_time_that_is_none_is_a_usage_error(tmp_path: Path) -> None:
    status, _, err = run(write(tmp_path / "r", recorded_calls()), "--at", "noon")
    assert (status, "expected a time such as" in err) == (2, True)
