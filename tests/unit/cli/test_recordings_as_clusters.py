"""``--from RECORDING`` asks about the cluster of a recording, as it was at some time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from stowage.analysis.followed_objects import FollowedObjects
from stowage.analysis.loaded_cluster import load_cluster
from stowage.api.config.loading import load_configuration
from stowage.api.events import (
    AssignedPodSeen,
    ConfigurationChanged,
    DeviceObjectGone,
    DeviceObjectSeen,
    Event,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
    WorkloadGone,
    WorkloadSeen,
)
from stowage.cli.ask.what_if import MAX_ADDED_NODES
from stowage.cli.main import app
from stowage.cli.profiles import make_frameworks
from stowage.engine import make_engine
from stowage.engine.journal import HandleCall
from tests.support.builders import label_selector, make_node, make_pod
from tests.support.device_builders import make_claim
from tests.support.engines import configuration_of, fit_profile
from tests.support.recorded_cluster import RecordedCluster, write_recording


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(map(str, arguments)), terminal_width=200)
    return done.exit_code, done.stdout, done.stderr


def answer(*arguments: object) -> Any:
    status, out, err = run(*arguments, "-o", "json")
    assert status == 0, err
    assert "note: the cluster as of 1970-01-12T" in err
    return msgspec.json.decode(out)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A pod waits for 100 s until a node is added; then another pod gets the rest of it."""
    cluster = RecordedCluster(("small",), cpu="1")
    cluster.create_pods([make_pod("big", cpu="2", scheduler_name="stowage")])
    cluster.advance(100.0)
    cluster.put_node(make_node("large", cpu="3"))
    cluster.advance(60.0)
    cluster.create_pods([make_pod("late", cpu="1", scheduler_name="stowage")])
    cluster.advance(60.0)
    return cluster.write(tmp_path / "r.recording")


def test_a_pod_is_explained_as_of_a_time(recording: Path) -> None:
    ask = ("explain", "pod", "big", "--from", recording)
    before = answer(*ask, "--at", "1970-01-12T13:47:00Z")
    assert (before["decision"]["outcome"], before["decision"]["numNodes"]) == ("Unschedulable", 1)
    assert before["basis"].startswith("evaluated against the cluster as of 1970-01-12T13:4")
    assert before["basis"].endswith(", from a recording")
    assert answer(*ask)["node"] == "large"


def test_a_pod_is_explained_before_its_last_attempt(recording: Path) -> None:
    found = answer("explain", "pod", "late", "--from", recording, "--until", "late")
    assert (found.get("node", ""), found["decision"]["outcome"]) == ("", "Scheduled")
    assert found["decision"]["best"] == ["large"]


def test_a_folder_stands_for_its_newest_recording(recording: Path) -> None:
    found = answer("explain", "node", "large", "--from", recording.parent)
    assert sorted(found["pods"]) == ["default/big", "default/late"]


def test_the_other_questions_take_recordings(recording: Path, tmp_path: Path) -> None:
    pod = tmp_path / "pod.json"
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    metadata, spec = {"name": "more"}, {"schedulerName": "stowage", "containers": [container]}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    pod.write_bytes(msgspec.json.encode(manifest))
    where = ("--from", recording)
    early = ("--at", "1970-01-12T13:47:00Z")
    assert answer("capacity", "-f", pod, *where, *early)["fits"] == 1
    assert answer("capacity", "-f", pod, *where)["fits"] == 1
    moved = answer("what-if", "-f", pod, *where, *early)
    assert [(each["pod"], each["node"]) for each in moved["placed"]] == [("default/more", "small")]
    assert [each["pod"] for each in moved["pending"]] == ["default/big"]
    assert answer("compact", *where, *early)["removable"] == ["small"]
    lines = "explain pod big -o json\nexit\n"
    done = CliRunner().invoke(app, ["shell", "--from", str(recording)], input=lines)
    assert done.exit_code == 0


def test_the_recorded_configuration_answers_unless_there_is_another(tmp_path: Path) -> None:
    packing = configuration_of(fit_profile("MostAllocated"))
    nodes = [NodeSeen(make_node(name, cpu="8", memory="8Gi")) for name in ("a", "b")]
    there = make_pod("there", cpu="2", memory="2Gi", node="b")
    waiting = make_pod("p", cpu="1", memory="1Gi")
    events: list[Event] = [*nodes, AssignedPodSeen(there), PendingPodSeen(waiting)]
    calls = [
        HandleCall(0.0, tuple(events), ()),
        HandleCall(10.0, (ConfigurationChanged("x", packing),), ()),
    ]
    path = write_recording(tmp_path / "r", calls, decisions=False)
    ask = ("explain", "pod", "p", "--from", path)
    assert answer(*ask)["decision"]["best"] == ["b"]
    assert answer(*ask, "--at", "1970-01-12T13:46:45Z")["decision"]["best"] == ["a"]
    config = tmp_path / "config.json"
    config.write_bytes(msgspec.json.encode(configuration_of(fit_profile())))
    assert answer(*ask, "--config", config)["decision"]["best"] == ["a"]


def test_an_observed_pod_is_asked_about_before_it_got_its_node(tmp_path: Path) -> None:
    bound = make_pod("p", cpu="1", node="b")
    calls = [
        HandleCall(0.0, tuple(NodeSeen(make_node(name, cpu="8")) for name in "ab"), ()),
        HandleCall(1.0, (PendingPodSeen(make_pod("p", cpu="1")),), ()),
        HandleCall(2.0, (PendingPodGone("default", "p", "uid-p"), AssignedPodSeen(bound)), ()),
    ]
    path = write_recording(tmp_path / "r", calls, decisions=False)
    found = answer("explain", "pod", "p", "--from", path, "--until", "p")
    assert sorted(found["decision"]["best"]) == ["a", "b"]
    assert answer("explain", "pod", "p", "--from", path)["node"] == "b"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--from", "{r}", "--until", "missing"), 1, "has no pod default/missing\n"),
        (
            ("--from", "{r}", "--until", "missing", "--at", "1970-01-12T13:46:45Z"),
            1,
            "has no pod default/missing up to 1970-01-12T13:46:45.000000Z\n",
        ),
        (
            ("--from", "{r}", "--at", "1970-01-01T00:00:00Z"),
            1,
            "it begins at 1970-01-12T13:46:40.000000Z, expected a later --at",
        ),
        (("--from", "{r}", "--from", "{r}"), 1, "expected no other --from beside a recording"),
        (("--from", "{d}/empty"), 1, "expected a recording (*.recording) in this folder"),
        (("--from", "{d}/pod.json", "--until", "p"), 2, "--at and --until need a recording"),
        (("--from", "{r}", "--at", "noon"), 2, "expected a time such as"),
    ],
)
def test_bad_input_is_named(
    recording: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    folder = recording.parent
    (folder / "empty").mkdir()
    (folder / "pod.json").write_text("[]")
    given = [each.format(r=recording, d=folder) for each in arguments]
    found, out, err = run("explain", "pod", "big", *given)
    assert (found, out) == (status, "")
    assert message in err


def test_more_nodes_than_memory_may_hold_are_refused_by_the_flag(recording: Path) -> None:
    added = ("what-if", "--from", recording, "--like", "n", "--add-nodes")
    status, out, err = run(*added, MAX_ADDED_NODES + 1)
    assert (status, out) == (2, "")
    assert "'--add-nodes': Input should be less than or equal to 100000" in err


def test_followed_objects_show_an_engine_what_the_events_showed() -> None:
    events: list[Event] = [
        NodeSeen(make_node("n", cpu="4")),
        WorkloadSeen("Service", "default", "s", label_selector({"a": "b"})),
        WorkloadSeen("Service", "default", "none", None),
        WorkloadSeen("ReplicaSet", "default", "rs", label_selector({"c": "d"})),
        WorkloadSeen("StatefulSet", "default", "gone", label_selector({"e": "f"})),
        WorkloadGone("StatefulSet", "default", "gone"),
        DeviceObjectSeen(make_claim("c")),
        DeviceObjectSeen(make_claim("gone")),
        DeviceObjectGone("ResourceClaim", "default", "gone"),
    ]
    followed = FollowedObjects()
    for event in events:
        followed.follow(event)
    shown = make_engine(make_frameworks(load_configuration()), lambda _num_ties: 0)
    shown.handle(events, 0.0)
    loaded = load_cluster(followed.objects, make_frameworks(load_configuration()))
    for each in (shown, loaded.engine):
        snapshot = each.state.cache.snapshot()
        assert snapshot.devices.claims.keys() == {"default/c"}
        known = snapshot.workloads
        assert known.in_namespace("Service", "default") == {
            "s": label_selector({"a": "b"}),
            "none": None,
        }
        assert known.in_namespace("ReplicaSet", "default") == {"rs": label_selector({"c": "d"})}
        assert known.in_namespace("StatefulSet", "default") == {}
