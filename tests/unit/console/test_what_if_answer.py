"""The what-if of the page is the what-if of the command line."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec
import pytest

from stowage.analysis.changed_weights import with_weights
from stowage.analysis.explain_pod import NotInCluster
from stowage.analysis.loaded_cluster import load_cluster
from stowage.analysis.what_if import Question, what_if
from stowage.analysis.workload_pods import objects_of_manifests
from stowage.api.config.loading import InvalidConfiguration
from stowage.cli.ask.what_if import app
from stowage.console.answers.manifests import manifest_items
from stowage.console.answers.what_if_answer import (
    AddedNodes,
    Changes,
    InvalidManifests,
    command_line,
    what_if_answer,
)
from stowage.console.clusters.moment import Moment
from tests.support.builders import make_node, make_pod, owned_by
from tests.support.consoles import default_frameworks, moment_of

POD = "kind: Pod\nmetadata: {name: new}\nspec: {containers: [{name: c}], schedulerName: other}\n"
CHANGES = Changes(
    manifests=POD,
    cordon=("b",),
    drain=("a",),
    add_nodes=AddedNodes(1, "b"),
    weights={"NodeResourcesFit": 7},
)


def small() -> Moment:
    owner = owned_by("ReplicaSet", "web", "uid-web")
    return moment_of(
        make_node("a", cpu="4"),
        make_node("b", cpu="4"),
        make_node("c", cpu="1"),
        make_pod("moved", cpu="1", node="a", owner=owner),
        make_pod("alone", cpu="1", node="a"),
        make_pod("big", cpu="64"),
    )


def test_it_says_what_the_command_says() -> None:
    answer = what_if_answer(small(), CHANGES, "--context dev")
    moment = small()
    objects = moment.loaded.objects
    frameworks = [with_weights(each, CHANGES.weights) for each in default_frameworks()]
    created = objects_of_manifests(manifest_items(POD), objects)
    loaded = load_cluster(objects, frameworks, scheduler_names=["other"])
    expected = what_if(loaded, Question([(1, "b")], ["b"], ["a"], [], created))
    assert answer.placed == expected.placed
    assert answer.pending == expected.pending
    assert (answer.before, answer.after) == (expected.before, expected.after)
    assert answer.deleted == expected.deleted == ("default/alone",)


def test_the_maps_show_before_and_after() -> None:
    maps = what_if_answer(small(), CHANGES, "").maps
    assert maps.before.names == ["a", "b", "c"]
    assert maps.after.names == ["a", "b", "b-new-1", "c"]
    assert maps.before.unschedulable == [0, 0, 0]
    assert maps.after.unschedulable == [1, 1, 0, 0]
    assert (sum(maps.before.pods), sum(maps.after.pods)) == (2, 2)


def test_the_differences_are_sentences() -> None:
    answer = what_if_answer(small(), CHANGES, "")
    found = [each.text.partition(": 0/4")[0] for each in answer.differences]
    placed = [
        f"{each.pod}: {each.was} -> {each.node}" if each.was else f"{each.pod} -> {each.node}"
        for each in answer.placed
    ]
    assert found == [
        "node b-new-1 is added",
        "node b is cordoned",
        "node a is cordoned",
        *placed,
        "default/alone is deleted, and nothing makes it again",
    ]
    assert answer.num_differences == len(found)
    wire = msgspec.json.decode(msgspec.json.encode(answer))
    moved = next(each for each in wire["differences"] if each["kind"] == "moved")
    node = next(each.node for each in answer.placed if each.pod == moved["subject"])
    assert (moved["from"], moved["to"]) == ("a", node)


def test_a_pod_that_was_pending_and_stays_so_is_no_difference_and_an_evicted_one_is() -> None:
    owner = owned_by("ReplicaSet", "web", "uid-web")
    moment = moment_of(
        make_node("a", cpu="4"),
        make_pod("waiting", cpu="64"),
        make_pod("evicted", cpu="1", node="a", owner=owner),
    )
    answer = what_if_answer(moment, Changes(drain=("a",)), "")
    assert [each.pod for each in answer.pending] == ["default/evicted", "default/waiting"]
    found = [each.subject for each in answer.differences if each.kind == "pending"]
    assert found == ["default/evicted"]


def test_a_daemon_set_makes_no_pod_for_a_removed_node() -> None:
    template = "{spec: {containers: [{name: c}]}}"
    daemons = f"kind: DaemonSet\nmetadata: {{name: agent}}\nspec: {{template: {template}}}\n"
    changes = Changes(manifests=daemons, remove_nodes=("a",))
    answer = what_if_answer(moment_of(make_node("a"), make_node("b")), changes, "")
    assert [(each.pod, each.node) for each in answer.placed] == [("default/agent-b", "b")]
    assert answer.pending == ()


def test_the_command_line_is_one_that_the_command_takes() -> None:
    text = command_line(
        Changes(
            manifests=POD,
            cordon=("b", "c"),
            drain=("a",),
            remove_nodes=("d",),
            add_nodes=AddedNodes(2, "b"),
            weights={"ImageLocality": 3, "NodeAffinity": 0},
        ),
        "--from 'my dump.json'",
    )
    words = shlex.split(text)
    assert words[:2] == ["stowage", "what-if"]
    assert text.endswith("--add-nodes 2 --like b --weights ImageLocality=3,NodeAffinity=0")
    assert _parsed(words[2:]) == {
        "files": [Path("my dump.json")],
        "manifests": [Path("manifests.yaml")],
        "cordon": ["b,c"],
        "drain": ["a"],
        "remove_nodes": ["d"],
        "add_nodes": 2,
        "like": "b",
        "weights": ["ImageLocality=3,NodeAffinity=0"],
    }


def _parsed(words: list[str]) -> dict[str, object]:
    """What Typer makes of the words, without defaults."""
    from typer.main import get_command

    command = get_command(app)
    context = command.make_context("what-if", words)
    defaults = command.make_context("what-if", []).params
    return {name: value for name, value in context.params.items() if value != defaults[name]}


def test_invalid_manifests_have_their_errors() -> None:
    with pytest.raises(InvalidManifests) as refused:
        what_if_answer(small(), Changes(manifests="kind: Pod\n"), "")
    assert [each.line for each in refused.value.errors] == [1]


def test_an_unknown_plugin_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="Nonsense"):
        what_if_answer(small(), Changes(weights={"Nonsense": 1}), "")


def test_an_unknown_node_is_named() -> None:
    with pytest.raises(NotInCluster, match="there is no node x"):
        what_if_answer(small(), Changes(drain=("x",)), "")


def test_nothing_changes_without_changes() -> None:
    moment = moment_of(make_node("a"), make_pod("p", node="a"))
    answer = what_if_answer(moment, Changes(), "")
    assert answer.differences == []
    assert answer.command_line == "stowage what-if"
