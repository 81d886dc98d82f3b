"""``stowage replay --config`` and ``--weights`` show what would have been decided otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec.structs import replace
from typer.testing import CliRunner

from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
)
from stowage.api.instructions import EvictPod
from stowage.api.objects.meta import OwnerReference
from stowage.api.objects.pod import Pod
from stowage.cli.main import app
from stowage.engine.journal import Entry, HandleCall
from tests.support.builders import make_node, make_pod
from tests.support.engines import configuration_of, fit_profile
from tests.support.models.engine_driver import reference
from tests.support.recorded_cluster import RecordedCluster, write_recording

OWNER = OwnerReference("ReplicaSet", "rs", "uid-rs", "apps/v1", controller=True)


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["replay", *map(str, arguments)], terminal_width=200)
    return done.exit_code, done.stdout, done.stderr


def answer(*arguments: object) -> Any:
    status, out, err = run(*arguments, "-o", "json")
    assert (status, err) == (0, "")
    return msgspec.json.decode(out)


def pod(name: str, **fields: Any) -> Pod:
    return make_pod(name, scheduler_name="stowage", **fields)


def packing(folder: Path, scheduler_name: str = "stowage") -> Path:
    """A configuration that packs pods onto few nodes."""
    path = folder / "packing.yaml"
    path.write_text(yaml.safe_dump(configuration_of(fit_profile("MostAllocated", scheduler_name))))
    return path


@pytest.fixture
def spread(tmp_path: Path) -> Path:
    """A recording of four pods that were spread over two nodes."""
    cluster = RecordedCluster(("a", "b"), cpu="8", memory="8Gi")
    for number in range(4):
        cluster.create_pods([pod(f"p{number}", cpu="1", memory="1Gi")])
        cluster.advance(10.0)
    return cluster.write(tmp_path / "spread.recording")


def test_another_configuration_packs_the_pods(spread: Path, tmp_path: Path) -> None:
    found = answer(spread, "--config", packing(tmp_path))
    recorded, replayed, changed = found["lives"]
    assert [each["name"] for each in found["lives"]] == ["recorded", "replayed", "changed"]
    assert {key: recorded[key] for key in recorded if key != "name"} == {
        key: replayed[key] for key in replayed if key != "name"
    }
    assert found["pods"] == 4
    assert found["differing"] == [
        {
            "pod": f"default/p{number}",
            "nodes": {"recorded": "b", "replayed": "b", "changed": "a"},
            "tied": False,
        }
        for number in (1, 3)
    ]
    spread_cpu, packed_cpu = replayed["utilisation"]["cpu"], changed["utilisation"]["cpu"]
    assert spread_cpu["mean"] == packed_cpu["mean"]
    assert packed_cpu["deviation"] > spread_cpu["deviation"]
    assert (changed["placed"], changed["unplaced"], changed["preempted"]) == (4, 0, 0)


def test_other_weights_decide_otherwise(spread: Path) -> None:
    weights = "NodeResourcesFit=0,NodeResourcesBalancedAllocation=0,PodTopologySpread=0"
    found = answer(spread, "--weights", weights)
    assert [each["pod"] for each in found["differing"]] == ["default/p1", "default/p3"]
    assert all(each["tied"] for each in found["differing"])
    assert answer(spread, "--weights", "NodeResourcesFit=1")["differing"] == []


def test_the_answer_is_a_table_and_a_page(spread: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    status, out, _ = run(spread, "--config", packing(tmp_path), "--report", report)
    assert status == 0
    assert "2 of 4 pods have another node changed than replayed" in out
    assert [line.split() for line in out.splitlines() if "default/p1" in line] == [
        ["default/p1", "b", "b", "a"]
    ]
    page = report.read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "default/p3" in page
    assert "src=" not in page
    assert "href=" not in page


def test_an_equal_replay_has_a_page_as_well(spread: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    assert run(spread, "--report", report)[0] == 0
    assert "instructions are equal" in report.read_text()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--weights", "NodeResourcesFit"), 1, "expected PLUGIN=WEIGHT"),
        (("--weights", "Missing=1"), 1, "--weights"),
        (("--weights", "NodeResourcesFit=²"), 1, "a weight from 0 to 2147483647"),
        (("--weights", "NodeResourcesFit=2147483648"), 1, "a weight from 0 to 2147483647"),
        (("--weights", "ImageLocality=1, ImageLocality=2"), 1, "one weight of a plugin"),
        (("--config", "/missing.yaml"), 1, "a readable file"),
        (("--weights", "NodeResourcesFit=2", "--until", "p"), 2, "--until explains recorded"),
        (("--report", "report.txt"), 2, "ends in .html"),
        (("--report", "/missing/report.html"), 1, "/missing/report.html: No such file"),
    ],
)
def test_bad_input_is_named(
    spread: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    found, out, err = run(spread, *arguments)
    assert (found, out) == (status, "")
    assert message in err


def observed(pods: int) -> list[Entry]:
    """What an observer sees of another scheduler, which puts all pods onto node b."""
    calls: list[Entry] = [
        HandleCall(0.0, tuple(NodeSeen(make_node(name, cpu="8")) for name in ("a", "b")), ())
    ]
    for number in range(pods):
        made = make_pod(f"p{number}", cpu="1")
        placed = make_pod(f"p{number}", cpu="1", node="b")
        gone = PendingPodGone("default", f"p{number}", f"uid-p{number}")
        calls.append(HandleCall(10.0 * number + 5, (PendingPodSeen(made),), ()))
        calls.append(HandleCall(10.0 * number + 7, (AssignedPodSeen(placed), gone), ()))
    return calls


def test_a_recording_without_decisions_is_lived_through(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r", observed(2), decisions=False)
    found = answer(path)
    recorded, replayed = found["lives"]
    assert [each["pod"] for each in found["differing"]] == ["default/p0"]
    assert found["differing"][0]["nodes"] == {"recorded": "b", "replayed": "a"}
    assert (recorded["pending"]["meanS"], replayed["pending"]["meanS"]) == (2.0, 0.0)
    assert "no profile has the scheduler name default-scheduler" in found["notes"][-1]
    packed = answer(path, "--config", packing(tmp_path, "default-scheduler"))
    assert [each["pod"] for each in packed["differing"]] == ["default/p1"]
    status, out, err = run(path, "--until", "p1")
    assert (status, out) == (1, "")
    assert f"stowage explain pod p1 --from {path} --until p1" in err


@pytest.mark.parametrize("decisions", [True, False])
def test_a_recording_that_ends_before_its_first_call_is_an_error(
    tmp_path: Path, decisions: bool
) -> None:
    status, out, err = run(write_recording(tmp_path / "r", [], decisions=decisions))
    assert (status, out) == (1, "")
    assert "the recording ends before its first call" in err


def preempted() -> list[Entry]:
    """A pod of a controller is preempted; its controller makes another one, which finishes."""
    low = pod("low", cpu="4", node="a", owner=OWNER)
    high = pod("high", cpu="4", priority=10)
    again = pod("low-2", cpu="4", owner=OWNER)
    leaving = replace(
        low, metadata=replace(low.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    )
    evict = EvictPod(reference("low"), reference("high"), "stowage")
    bound = replace(high, spec=replace(high.spec, node_name="a"))
    placed = replace(again, spec=replace(again.spec, node_name="b"))
    return [
        HandleCall(0.0, (NodeSeen(make_node("a", cpu="4")),), ()),
        HandleCall(0.0, (PendingPodSeen(replace(low, spec=replace(low.spec, node_name=""))),), ()),
        HandleCall(3.0, (AssignedPodSeen(low),), ()),
        HandleCall(5.0, (PendingPodSeen(high),), (evict,)),
        HandleCall(6.0, (AssignedPodSeen(leaving), PendingPodSeen(again)), ()),
        HandleCall(7.0, (AssignedPodGone("default", "low", "uid-low"),), ()),
        HandleCall(8.0, (AssignedPodSeen(bound),), ()),
        HandleCall(20.0, (NodeSeen(make_node("b", cpu="4")),), ()),
        HandleCall(25.0, (AssignedPodSeen(placed),), ()),
        HandleCall(90.0, (), ()),
    ]


def without_preemption(folder: Path) -> Path:
    disabled = {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}
    path = folder / "calm.yaml"
    profile = {"schedulerName": "stowage", "plugins": disabled}
    path.write_text(yaml.safe_dump(configuration_of(profile)))
    return path


def test_a_preempted_pod_and_its_successor_are_one_pod(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r", preempted())
    found = answer(path, "--config", without_preemption(tmp_path))
    recorded, replayed, changed = found["lives"]
    assert found["pods"] == 2
    assert [each["preempted"] for each in found["lives"]] == [1, 1, 0]
    nodes = {each["pod"]: each["nodes"] for each in found["differing"]}
    assert nodes == {
        "default/high": {"recorded": "a", "replayed": "a", "changed": "b"},
        "default/low": {"recorded": "b", "replayed": "b", "changed": "a"},
    }
    assert recorded["placed"] == replayed["placed"] == changed["placed"] == 2
    assert replayed["pending"]["p99S"] < changed["pending"]["p99S"]
