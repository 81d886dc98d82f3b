"""The commands that ask about a cluster answer about pod groups, from files and recordings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from stowage.analysis.followed_objects import FollowedObjects
from stowage.analysis.loaded_cluster import load_cluster
from stowage.api.config.loading import load_configuration
from stowage.api.events import Event, PodGroupGone, PodGroupSeen
from stowage.api.objects.pod_groups import COSCHEDULING_GROUPS
from stowage.cli.main import app
from stowage.cli.profiles import make_frameworks
from stowage.engine import make_engine
from tests.stories.gang_driver import make_group, make_member
from tests.support.recorded_cluster import RecordedCluster, write_recording

TRAINING = Path(__file__).parents[3] / "examples" / "gangs" / "training.yaml"
GROUP, JOB = list(yaml.safe_load_all(TRAINING.read_text()))


def node(name: str, **labels: str) -> dict[str, Any]:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": amounts},
    }


def member(index: int) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": f"t-{index}", "namespace": "default", "uid": f"t-{index}"},
        "spec": JOB["spec"]["template"]["spec"],
    }


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, list(map(str, arguments)), terminal_width=300)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Seven nodes with room for a member each, and the eight members."""
    group = {**GROUP, "metadata": {"name": "training", "namespace": "default", "uid": "g"}}
    nodes = [node(f"n{index}", rack=f"r{index % 2}") for index in range(7)]
    file = tmp_path / "objects.json"
    file.write_text(json.dumps([group, *nodes, *map(member, range(8))]))
    return file


def test_a_group_is_explained_as_a_table_and_as_json(cluster: Path) -> None:
    out = run("explain", "group", "training", "--from", cluster)
    first = out.splitlines()[0]
    assert first.startswith("default/training (Unschedulable): 7 of 8 members fit; default/t-7 ")
    assert "default/t-7, beside the members before it:" in out
    assert "fits on 7 nodes if it asked for 2 less cpu" in out
    found = json.loads(run("explain", "group", "default/training", "--from", cluster, "-o", "json"))
    assert (found["outcome"], found["numFitting"], found["minCount"]) == ("Unschedulable", 7, 8)
    wide = run("explain", "group", "training", "--from", cluster, "-o", "wide")
    assert [line.split()[:2] for line in wide.splitlines() if line.startswith("default/t-6")] == [
        ["default/t-6", "Fits"]
    ]


def test_a_member_is_explained_with_its_group(cluster: Path) -> None:
    fits = run("explain", "pod", "t-0", "--from", cluster)
    assert "default/t-0 is pending, and waits for its pod group; it fits on n" in fits
    assert "pod group default/training (Unschedulable): 7 of 8 members fit;" in fits
    lacks = run("explain", "pod", "t-7", "--from", cluster)
    assert "default/t-7 is pending (Unschedulable): 0/7 nodes are available: 7 Insuff" in lacks


def test_without_the_gate_members_are_ordinary_pods(cluster: Path) -> None:
    off = ("--from", cluster, "--feature-gates", "GenericWorkload=false")
    assert "training (OneByOne): the feature gate" in run("explain", "group", "training", *off)
    assert "default/t-7 is pending, and would be placed on" in run("explain", "pod", "t-7", *off)
    assert run("capacity", "-f", TRAINING, *off).startswith("7 more pods fit")


def test_an_unknown_group_is_named(cluster: Path) -> None:
    done = CliRunner().invoke(app, ["explain", "group", "other", "--from", str(cluster)])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "there is no pod group default/other" in done.stderr


def test_gangs_are_counted_and_created_in_memory(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.json"
    nodes.write_text(json.dumps([node(f"n{index}") for index in range(20)]))
    out = run("capacity", "-f", TRAINING, "--from", nodes)
    assert out.startswith("2 more gangs of 8 pods fit")
    assert "default/training-more-2 (Unschedulable): 4 of 8 members fit;" in out
    limited = run("capacity", "-f", TRAINING, "--from", nodes, "--max-limit", "1", "-o", "wide")
    assert limited.startswith("at least 1 more gangs of 8 pods fit")
    out = run("what-if", "-f", TRAINING, "--from", nodes)
    assert "pod group default/training (Scheduled): 8 of 8 members are scheduled" in out
    assert "goes to" in out
    nodes.write_text(json.dumps([node(f"n{index}") for index in range(7)]))
    out = run("what-if", "-f", TRAINING, "--from", nodes)
    assert "7 of 8 members fit; default/training-7 does not" in out
    assert "goes to" not in out
    assert "pods on nodes      0              0" in out


def _recorded() -> RecordedCluster:
    """A gang of three that waits for a third node for 100 s."""
    cluster = RecordedCluster(("n0", "n1"), cpu="1")
    group = make_group(min_count=3)
    cluster.objects.add(group)
    cluster.show([PodGroupSeen(group)])
    cluster.create_pods([make_member(f"p{index}", scheduler_name="stowage") for index in range(3)])
    cluster.advance(100.0)
    return cluster


def test_a_group_is_explained_as_of_a_recording(tmp_path: Path) -> None:
    entries = _recorded().journal.entries
    recording = write_recording(tmp_path / "r.recording", entries)
    out = run("explain", "group", "g", "--from", recording)
    assert out.startswith("default/g (Unschedulable): 2 of 3 members fit; default/p2 does not")
    assert "evaluated against the cluster as of 1970-01-12T" in out


def test_the_gates_of_the_recorded_scheduler_count_unless_others_are_given(
    tmp_path: Path,
) -> None:
    gates = {"GenericWorkload": False}
    entries = _recorded().journal.entries
    recording = write_recording(tmp_path / "r.recording", entries, gates=gates)
    question = ("explain", "group", "g", "--from", recording)
    assert "(OneByOne)" in run(*question)
    assert "(Unschedulable)" in run(*question, "--feature-gates", "GenericWorkload=true")


def test_followed_groups_are_those_that_the_events_showed() -> None:
    events: list[Event] = [
        PodGroupSeen(make_group("core", 3)),
        PodGroupSeen(make_group("custom", 2), COSCHEDULING_GROUPS, 60),
        PodGroupSeen(make_group("gone", 2), COSCHEDULING_GROUPS),
        PodGroupSeen(make_group("gone", 5)),
        PodGroupGone("default", "gone", COSCHEDULING_GROUPS),
    ]
    followed = FollowedObjects()
    for event in events:
        followed.follow(event)
    shown = make_engine(make_frameworks(load_configuration()), lambda _num_ties: 0)
    shown.handle(events, 0.0)
    loaded = load_cluster(followed.objects, make_frameworks(load_configuration()))
    for key in ("default/core", "default/custom", "default/gone"):
        expected = shown.state.cache.pod_groups.group(key)
        assert expected is not None
        assert loaded.engine.state.cache.pod_groups.group(key) == expected
