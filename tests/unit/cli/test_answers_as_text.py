"""The text of answers: each sentence once, every name whole, and what happens next."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stowage.analysis.explanation import NodeExplanation
from stowage.cli.ask.flags import OutputFormat
from stowage.cli.ask.output import plain_table, write_answer
from stowage.cli.main import app

LONG = "ip-10-0-0-17.eu-central-1.compute.internal"
OTHER = "ip-10-0-1-17.eu-central-1.compute.internal"


def _node(name: str) -> dict[str, Any]:
    allocatable = {"cpu": "2", "memory": "8Gi", "pods": "110"}
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}}


def _pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    metadata = {"name": name, "namespace": "shop", "uid": name}
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.json"
    pods = [
        _pod("big", "9"),
        _pod("gated", schedulingGates=[{"name": "example.com/quota"}]),
        _pod("unbound", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "none"}}]),
        _pod("fits"),
    ]
    path.write_text(json.dumps([_node(LONG), _node(OTHER), *pods]), encoding="utf-8")
    return path


def ask(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_message_of_preemption_is_shown_once(cluster: Path) -> None:
    text = ask("explain", "pod", "shop/big", "--from", cluster)
    assert text.count("2 Preemption is not helpful for scheduling") == 1
    assert "\npreemption does not help\n" in text


def test_a_rejection_of_pre_filter_is_shown_once(cluster: Path) -> None:
    text = ask("explain", "pod", "shop/unbound", "--from", cluster)
    assert text.count('persistentvolumeclaim "none" not found') == 1
    assert "\nPreFilter: VolumeRestrictions\n" in text


def test_a_gated_pod_says_when_its_gates_are_judged_again(cluster: Path) -> None:
    text = ask("explain", "pod", "shop/gated", "--from", cluster)
    assert text.count("waiting for scheduling gates: [example.com/quota]") == 1
    assert "PreEnqueue is asked again after one of these events" in text
    assert "it is tried again" not in text


@pytest.mark.parametrize(
    "words",
    [
        ("pod", "pod/big", "-n", "shop"),
        ("pods", "shop/big"),
        ("po", "po/shop/big"),
        ("pod/big", "--namespace", "shop"),
    ],
)
def test_a_pod_is_named_as_for_kubectl(cluster: Path, words: tuple[str, ...]) -> None:
    text = ask("explain", *words, "--from", cluster)
    assert text.startswith("shop/big is pending (Unschedulable)")


@pytest.mark.parametrize("words", [("node", f"node/{LONG}"), (f"no/{LONG}",), ("nodes", LONG)])
def test_a_node_is_named_as_for_kubectl(cluster: Path, words: tuple[str, ...]) -> None:
    assert ask("explain", *words, "--from", cluster).startswith(f"{LONG}: 0 pods")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (("explain", "pod", "shop/fits"), f"points   {LONG}   {OTHER}"),
        (("what-if", "--drain", f"node/{LONG}"), f"shop/fits   -        {OTHER}"),
        (("compact",), f"  {LONG}: shop/fits has no controller that would make it again"),
    ],
)
def test_a_pipe_gets_whole_names_and_no_blanks_at_the_ends_of_lines(
    cluster: Path, monkeypatch: pytest.MonkeyPatch, question: tuple[str, ...], expected: str
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    text = ask(*question, "--from", cluster)
    assert " ".join(expected.split()) in " ".join(text.split())
    assert "…" not in text
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_narrow_terminal_folds_names(monkeypatch: pytest.MonkeyPatch) -> None:
    table = plain_table("pod", "node")
    table.add_row("shop/fits", LONG)
    shown = _Terminal()
    monkeypatch.setattr("sys.stdout", shown)
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    write_answer(NodeExplanation("n"), OutputFormat.TABLE, lambda _answer, _wide: [table])
    _headings, _rule, *rows = shown.getvalue().splitlines()
    assert max(map(len, rows)) <= 30
    assert "".join(row[12:].strip() for row in rows) == LONG


def test_why_pods_stay_pending_is_a_line_for_each(cluster: Path) -> None:
    text = ask("what-if", "--from", cluster)
    message = '0/2 nodes are available: persistentvolumeclaim "none" not found. not found'
    assert f"\n  shop/unbound: {message}\n" in text


def test_kinds_of_manifests_that_scheduling_does_not_read_are_named(
    cluster: Path, tmp_path: Path
) -> None:
    """Otherwise the pods of a misspelt workload would be missing without a word."""
    meta = {"name": "web"}
    manifests = tmp_path / "manifests.json"
    kinds = ["Service", "Deploymnt", "ConfigMap"]
    items = [*({"kind": kind, "metadata": meta} for kind in kinds), _pod("new")]
    manifests.write_text(json.dumps(items), encoding="utf-8")
    text = ask("what-if", "-f", manifests, "--from", cluster)
    note = "scheduling does not read these kinds of the manifests: ConfigMap, Deploymnt"
    assert text.splitlines()[-1] == note
    manifests.write_text(json.dumps(_pod("new")), encoding="utf-8")
    assert "these kinds" not in ask("what-if", "-f", manifests, "--from", cluster)


def test_a_daemon_set_is_not_counted(cluster: Path, tmp_path: Path) -> None:
    """Each of its pods is for one node, so a count of pods like the first is about this node."""
    template = {"spec": {"containers": [{"name": "main"}]}}
    item = {"kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": {"template": template}}
    manifest = tmp_path / "agent.json"
    manifest.write_text(json.dumps(item), encoding="utf-8")
    arguments = ["capacity", "-f", str(manifest), "--from", str(cluster)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: DaemonSet agent: expected a pod, or a workload")


def test_an_answer_about_files_does_not_speak_of_a_running_cluster(cluster: Path) -> None:
    text = ask("explain", "pod", "shop/fits", "--from", cluster)
    assert text.splitlines()[1] == "evaluated against the cluster in the files"


def test_manifests_without_namespaces_and_uids_are_a_cluster(cluster: Path) -> None:
    pods = [_pod("a"), _pod("b")]
    for pod in pods:
        del pod["metadata"]["namespace"], pod["metadata"]["uid"]
    cluster.write_text(json.dumps([_node(LONG), *pods]), encoding="utf-8")
    text = ask("what-if", "--from", cluster)
    assert [f"default/{name} - {LONG}" in " ".join(text.split()) for name in "ab"] == [True, True]


def test_a_manifest_whose_namespace_is_a_number_is_left_out(cluster: Path) -> None:
    pod = _pod("a")
    pod["metadata"] = {"name": "a", "namespace": 5}
    cluster.write_text(json.dumps([_node(LONG), pod]), encoding="utf-8")
    note = 'note: Pod 5/a: metadata.namespace: "5" is not valid'
    assert note in ask("what-if", "--from", cluster)


def test_a_pod_that_would_not_fit_on_its_node_again_waits_for_nothing(cluster: Path) -> None:
    cluster.write_text(json.dumps([_node(LONG), _pod("full", "9", nodeName=LONG)]))
    text = ask("explain", "pod", "shop/full", "--from", cluster)
    assert text.startswith(f"shop/full is on node {LONG}\n")
    assert "a new decision would find no node: 0/1 nodes are available: 1 Insufficient cpu." in text
    assert "tried again" not in text
    assert "\npreemption" not in text


def test_files_without_nodes_and_objects_are_told_apart(cluster: Path) -> None:
    cluster.write_text(json.dumps([_pod("fits")]), encoding="utf-8")
    text = "note: there are no nodes in the files: kubectl get nodes,pods -A -o json prints both"
    assert text in ask("explain", "pod", "shop/fits", "--from", cluster)
    cluster.write_text("NAME STATUS AGE\nn Ready 5d\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["explain", "pod", "shop/fits", "--from", str(cluster)])
    assert done.exit_code == 1
    assert "expected an object with a kind, as kubectl get -o json" in done.output


def test_a_daemon_set_of_a_manifest_makes_no_pod_for_a_removed_node(
    cluster: Path, tmp_path: Path
) -> None:
    manifest = tmp_path / "agent.json"
    spec = {"template": {"spec": _pod("agent")["spec"]}}
    agent = {"kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": spec}
    manifest.write_text(json.dumps(agent), encoding="utf-8")
    text = ask("what-if", "--from", cluster, "-f", manifest, "--remove-nodes", OTHER)
    assert f"agent-{LONG}" in text
    assert f"agent-{OTHER}" not in text
