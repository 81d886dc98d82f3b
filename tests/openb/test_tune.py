"""``stowage tune openb`` on small files: the search sees the first pods only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from stowage.analysis.simulation.openb.objects import RESOURCE
from stowage.analysis.tuning.arrival_parts import openb_parts
from stowage.api.config.loading import load_configuration
from stowage.cli.profiles import make_frameworks
from stowage.cli.simulate.openb import app as simulate
from stowage.cli.tune import app as tune
from tests.openb.installed import gpushare_registry
from tests.openb.synthetic import nodes_csv, pods_csv, synthetic_trace

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "openb_pod_list_small.csv"
    nodes.write_bytes(nodes_csv(1))
    pods.write_bytes(pods_csv(1))
    return ["--nodes", str(nodes), "--pods", str(pods), "--workers", "1"]


@pytest.fixture
def run(files: list[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        given = ["openb", *files, *map(str, arguments)]
        done = CliRunner().invoke(tune, given, terminal_width=200)
        return done.exit_code, done.stdout, done.stderr

    return call


def test_the_parts_are_all_pods_once_and_each_has_all_nodes() -> None:
    whole = synthetic_trace(1)
    first, later = openb_parts(whole, 0.7)
    assert first.pods + later.pods == whole.pods
    assert (len(first.pods), len(later.pods)) == (63, 27)
    assert first.nodes == later.nodes == whole.nodes
    assert (first.name, later.name) == ("synthetic-1, first 70%", "synthetic-1, last 30%")


@pytest.mark.usefixtures("installed")
def test_the_configuration_says_what_it_gains_and_runs_on_the_same_trace(
    run: Run, files: list[str], tmp_path: Path
) -> None:
    tuned, report = tmp_path / "tuned.yaml", tmp_path / "report.html"
    objectives = ("--objective", "allocation", "--objective", "fragmentation")
    flags = ("--trials", 6, "--seeds", 42, "--write", tuned, "--report", report)
    status, out, err = run(*objectives, *flags)
    assert (status, out) == (0, ""), err
    comment = [line for line in tuned.read_text().splitlines() if line.startswith("#")]
    assert "# Searched on the first 70% of the pods of small, seeds 42:" in comment
    assert "# Held back: the other pods, seeds 43, 44, 45, 46, 47:" in comment
    for metric in ("unallocated_gpus_pct", "fragmentation", "failed"):
        assert sum(line.startswith(f"#   {metric} ") for line in comment) == 2
    profile = make_frameworks(
        load_configuration(yaml.safe_load(tuned.read_text())), gpushare_registry()
    )[0].profile
    assert all(0 < weight <= 10 for weight in profile.weights.values())
    assert f"NodeResourcesFit.{RESOURCE}" in report.read_text()
    again = CliRunner().invoke(simulate, [*files, "--policies", str(tuned), "--seeds", "1"])
    assert again.exit_code == 0, again.output


def test_a_missing_package_is_named_before_the_search(run: Run) -> None:
    status, out, err = run()
    assert (status, out) == (1, "")
    assert "pip install ./examples/gpushare" in err


@pytest.mark.usefixtures("installed")
def test_a_configuration_that_gives_no_gpus_is_refused(run: Run, tmp_path: Path) -> None:
    plain = tmp_path / "plain.yaml"
    plain.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n", "utf-8"
    )
    status, out, err = run("--config", plain)
    assert (status, out) == (1, "")
    assert "expected GpuSharing in its profile" in err


@pytest.mark.usefixtures("installed")
def test_a_part_without_gpus_is_refused(run: Run, tmp_path: Path) -> None:
    pods = tmp_path / "late.csv"
    lines = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli", "a,1,1,0,0", "b,1,1,1,500"]
    pods.write_text("\n".join(lines), "utf-8")
    status, _, err = run("--pods", pods)
    assert status != 0
    assert "no pod requests a GPU" in err
