"""A configuration file of kube-scheduler works unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from stowage.cli.main import app

FILE = Path(__file__).with_name("kube-scheduler.yaml")
WIDE = {"COLUMNS": "200"}


def check(file: Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["config", "check", str(file)], env=WIDE)
    return result.exit_code, result.output


def test_a_file_with_all_fields_of_v1_36_is_accepted() -> None:
    exit_code, output = check(FILE)
    assert exit_code == 0, output
    assert "profiles: default-scheduler, second" in output


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ("minCandidateNodesPercentage: 101", "minCandidateNodesPercentage"),
        ("minCandidateNodesAbsolute: -1", "minCandidateNodesAbsolute"),
        (
            "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}",
            "minCandidateNodesAbsolute",
        ),
        ("minCandidates: 1", "minCandidates"),
    ],
)
def test_the_arguments_of_preemption_are_validated(args: str, path: str, tmp_path: Path) -> None:
    args = args if args.startswith("{") else "{" + args + "}"
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{pluginConfig: [{{name: DefaultPreemption, args: {args}}}]}}]\n"
    )
    exit_code, output = check(file)
    assert exit_code == 1
    assert f"profiles[0].pluginConfig[0].args.{path}" in output
