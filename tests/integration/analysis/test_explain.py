"""``stowage explain`` reads a cluster over HTTP, or files, and writes to neither."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from simcluster.tests.support.api_client import NODES, PODS, ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from tests.integration.analysis.commands import run_stowage
from tests.integration.scheduling.cluster import Cluster

Json = dict[str, Any]


def explain(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return run_stowage("explain", *arguments, stdin=stdin)


@pytest.fixture
async def cluster(api: ApiClient) -> Cluster:
    """A cluster with a small and a tainted node, and a pod that fits on neither."""
    cluster = Cluster(api)
    await cluster.add_node("small")
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    await cluster.add_node("tainted", taints=[taint])
    await cluster.create("big", cpu="6")
    return cluster


async def test_a_pending_pod_of_a_running_cluster_is_explained(
    api_server: ApiServerUnderTest, api: ApiClient, cluster: Cluster
) -> None:
    before = [(await api.get(path)).body for path in (NODES, PODS)]
    flags = ("--kubeconfig", str(api_server.kubeconfig), "-o", "json")
    done = await asyncio.to_thread(explain, "pod", "big", *flags)
    assert (done.returncode, done.stderr) == (0, "")
    decision = json.loads(done.stdout)["decision"]
    assert decision["outcome"] == "Unschedulable"
    small, tainted = decision["nodes"]
    assert small["rejectedBy"]["plugin"] == "NodeResourcesFit"
    assert tainted["rejectedBy"]["plugin"] == "TaintToleration"
    assert [each["plugin"] for each in tainted["alsoRejectedBy"]] == ["NodeResourcesFit"]
    assert [(await api.get(path)).body for path in (NODES, PODS)] == before


async def test_a_table_is_readable_without_colours(
    api_server: ApiServerUnderTest, cluster: Cluster
) -> None:
    flags = ("--kubeconfig", str(api_server.kubeconfig))
    done = await asyncio.to_thread(explain, "pod", "default/big", *flags)
    assert "default/big is pending (Unschedulable): 0/2 nodes are available" in done.stdout
    assert "fits on node small if it asked for 2 less cpu" in done.stdout
    assert "\x1b" not in done.stdout
    node = await asyncio.to_thread(explain, "node", "small", *flags)
    assert "default/big   NodeResourcesFit: Insufficient cpu" in node.stdout


def _objects() -> list[Json]:
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": "p"}}
    node = {"metadata": {"name": "n", "uid": "n"}, "status": {"allocatable": {"pods": "10"}}}
    return [{"kind": "Pod", **pod}, {"kind": "Node", **node}]


def test_objects_come_from_files_in_the_forms_of_kubectl(tmp_path: Path) -> None:
    pod, node = _objects()
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps({"kind": "List", "items": [node]}))
    done = explain("pod", "p", "--from", str(listed), "--from", "-", stdin=yaml.safe_dump(pod))
    assert done.returncode == 0, done.stderr
    assert "default/p is pending, and would be placed on n" in done.stdout


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "expected JSON or YAML"),
        ("[1]", "document 1, object 1: expected an object with a kind"),
        ("metadata: {}", "document 1, object 1: expected an object with a kind"),
    ],
)
def test_a_file_without_objects_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    done = explain("pod", "p", "--from", str(file))
    assert (done.returncode, done.stdout) == (1, "")
    assert str(file) in done.stderr
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_an_invalid_object_is_left_out_and_named(tmp_path: Path) -> None:
    pod, node = _objects()
    broken = {"kind": "Node", "metadata": {"name": "bad"}, "status": {"allocatable": 7}}
    file = tmp_path / "objects.json"
    file.write_text(json.dumps([pod, node, broken]))
    done = explain("pod", "p", "--from", str(file), "-o", "json")
    assert "Node bad" in done.stderr
    assert json.loads(done.stdout)["decision"]["chosen"] == "n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("pod", "none"), "there is no pod default/none"),
        (("node", "none"), "there is no node none"),
    ],
)
def test_an_unknown_name_is_an_error(
    tmp_path: Path, arguments: tuple[str, str], complaint: str
) -> None:
    file = tmp_path / "objects.json"
    file.write_text(json.dumps(_objects()))
    done = explain(*arguments, "--from", str(file))
    assert (done.returncode, done.stdout) == (1, "")
    assert complaint in done.stderr


def test_an_unreachable_server_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    named = {"name": "c"}
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "clusters": [{**named, "cluster": {"server": "http://127.0.0.1:1"}}],
                "users": [{**named, "user": {}}],
                "contexts": [{**named, "context": {"cluster": "c", "user": "c"}}],
                "current-context": "c",
            }
        )
    )
    done = explain("pod", "p", "--kubeconfig", str(kubeconfig))
    assert (done.returncode, done.stdout) == (1, "")
    assert "127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr
    unknown = explain("pod", "p", "--kubeconfig", str(kubeconfig), "--context", "other")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "cannot be used" in unknown.stderr
