"""The commands that ask about a cluster speak of devices, and obey feature gates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stowage.cli.main import app

GPUS = Path(__file__).parents[3] / "examples" / "gpus"
CLASS = {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
NODE = {
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}},
}
SLICE: dict[str, Any] = {
    "kind": "ResourceSlice",
    "metadata": {"name": "n-gpus"},
    "spec": {
        "driver": "gpu.example.com",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n",
        "devices": [
            {
                "name": "d",
                "attributes": {"model": {"string": "a100"}},
                "taints": [{"key": "broken", "effect": "NoSchedule"}],
            }
        ],
    },
}
CLAIM = {
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "default", "uid": "c"},
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "r",
                    "exactly": {
                        "deviceClassName": "gpu",
                        "allocationMode": "ExactCount",
                        "count": 1,
                    },
                }
            ]
        }
    },
}
POD = {
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default", "uid": "p"},
    "spec": {
        "containers": [{"name": "main"}],
        "resourceClaims": [{"name": "c", "resourceClaimName": "c"}],
    },
}


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps([NODE, CLASS, SLICE, CLAIM, POD]), encoding="utf-8")
    return file


def ask(*arguments: object) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_explain_names_the_request_that_fails_and_what_would_help(cluster: Path) -> None:
    lines = ask("explain", "pod", "p", "--from", cluster).splitlines()
    request = "claim default/c, request r (1 device of gpu)"
    finding = "taints tolerated of 0 of 1 devices: broken:NoSchedule"
    assert f"  1 node: {request}: {finding}" in lines
    assert "  fits on node n if request r tolerated broken:NoSchedule" in lines


def test_the_whole_answer_has_the_counts(cluster: Path) -> None:
    answer: Any = json.loads(ask("explain", "pod", "p", "--from", cluster, "-o", "json"))
    (shortage,) = answer["decision"]["deviceShortages"]
    assert (shortage["why"], shortage["nodes"]) == ("Taint", ["n"])
    assert shortage["counts"] == {
        "devices": 1,
        "ofClass": 1,
        "selected": 1,
        "tolerated": 0,
        "sufficient": 0,
        "free": 0,
        "available": 0,
    }


def test_explain_node_lists_devices(cluster: Path) -> None:
    text = ask("explain", "node", "n", "--from", cluster, "-o", "wide")
    assert "1 device, 1 free" in text
    assert "gpu.example.com/n/d" in text
    assert "model=a100" in text


def test_a_question_is_answered_with_the_given_feature_gates(cluster: Path) -> None:
    gates = "--feature-gates=DRADeviceTaints=false"
    answer = json.loads(ask("explain", "pod", "p", "--from", cluster, gates, "-o", "json"))
    assert answer["decision"]["chosen"] == "n"


def test_capacity_and_what_if_read_templates(cluster: Path) -> None:
    untainted = {**SLICE["spec"], "devices": [{"name": f"d{number}"} for number in range(3)]}
    slices = [{**SLICE, "spec": untainted}]
    cluster.write_text(json.dumps([NODE, *slices]), encoding="utf-8")
    template = (GPUS / "template.yaml").read_text().partition("            selectors:")[0]
    (cluster.parent / "template.yaml").write_text(template, encoding="utf-8")
    files = ["-f", GPUS / "class.yaml", "-f", cluster.parent / "template.yaml"]
    files += ["-f", GPUS / "training.yaml"]
    assert ask("capacity", "--from", cluster, *files).startswith("3 more pods fit")
    text = ask("what-if", "--from", cluster, *files)
    assert "default/training-3, missing devices:" in text
    assert "request gpu (1 device of gpu.example.com): 0 of 3 devices are free" in text


def test_claims_in_files_have_the_defaults_of_the_api_server(cluster: Path) -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    claim = {**CLAIM, "spec": {"devices": {"requests": [request]}}}
    untainted = {**SLICE["spec"], "devices": [{"name": "d"}]}
    objects = [CLASS, NODE, {**SLICE, "spec": untainted}, claim, POD]
    cluster.write_text(json.dumps(objects), encoding="utf-8")
    answer = json.loads(ask("explain", "pod", "p", "--from", cluster, "-o", "json"))
    assert answer["decision"]["chosen"] == "n"


def test_unknown_feature_gates_are_refused(cluster: Path) -> None:
    arguments = ["explain", "pod", "p", "--from", str(cluster), "--feature-gates=X=true"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "unrecognized feature gate: X" in result.stderr
