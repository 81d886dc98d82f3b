"""``stowage capacity`` counts how many pods fit, and names what limits them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from tests.integration.analysis.commands import POD, objects, run_stowage

Json = dict[str, Any]


def test_the_number_is_counted_for_each_group_of_nodes(tmp_path: Path) -> None:
    flags = ("--from", objects(tmp_path), "-f", "-", "--group-by", "pool")
    done = run_stowage("capacity", *flags, "-o", "json", stdin=yaml.safe_dump(POD))
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert answer["fits"] == 9
    assert answer["perNode"] == {"n1": 1, "n2": 4, "n3": 4}
    assert [(each["value"], each["fits"]) for each in answer["groups"]] == [
        ("large", 8),
        ("small", 1),
    ]
    table = run_stowage("capacity", *flags, stdin=yaml.safe_dump(POD)).stdout
    assert "9 more pods fit" in table
    assert "the next one: 0/3 nodes are available: 3 Insufficient cpu." in table


def test_of_several_kinds_of_pods_the_first_is_counted_and_named(tmp_path: Path) -> None:
    spec = {"replicas": 2, "template": {"spec": POD["spec"]}}
    workload = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    flags = ("--from", objects(tmp_path), "-f", "-")
    done = run_stowage("capacity", *flags, stdin=yaml.safe_dump_all([workload, POD]))
    assert done.stderr == "note: counting pods like web-0, the first of 2 in the manifests\n"
    assert "9 more pods fit" in done.stdout
    assert run_stowage("capacity", *flags, stdin=yaml.safe_dump(workload)).stderr == ""


def test_a_manifest_without_pods_is_refused(tmp_path: Path) -> None:
    manifest = tmp_path / "service.yaml"
    manifest.write_text("{kind: Service, metadata: {name: s}}")
    done = run_stowage("capacity", "--from", objects(tmp_path), "-f", str(manifest))
    assert (done.returncode, done.stdout) == (1, "")
    assert "expected a pod, or a workload with pods" in done.stderr


def test_compact_names_the_nodes_that_could_be_removed(tmp_path: Path) -> None:
    file = objects(tmp_path)
    done = run_stowage("compact", "--from", file, "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["removable"] == ["n1", "n2", "n3"]
    assert "3 of 3 nodes could be removed" in run_stowage("compact", "--from", file).stdout
