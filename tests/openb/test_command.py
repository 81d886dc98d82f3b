"""``stowage simulate openb`` on small files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stowage.cli.simulate.openb import app
from tests.openb.installed import PACKAGE
from tests.openb.published import DETERMINISTIC
from tests.openb.synthetic import nodes_csv, pods_csv

HEADER = "trace,policy,seed,metric,at50,at80,at90,at100,at110,at120,at130"


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Runs the command on a small trace; the exit code and all output."""
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "openb_pod_list_small.csv"
    nodes.write_bytes(nodes_csv(1))
    pods.write_bytes(pods_csv(1, with_spec=True))

    def call(*arguments: str) -> tuple[int, str]:
        given = ["--nodes", str(nodes), "--pods", str(pods), "--workers", "1", *arguments]
        result = CliRunner().invoke(app, given)
        return result.exit_code, result.output

    return call


@pytest.mark.usefixtures("installed")
def test_all_policies_and_seeds_are_in_the_csv(
    run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    file, kept = tmp_path / "out.csv", tmp_path / "kept.jsonl"
    code, output = run("--seeds", "1-2", "--csv", str(file), "--resume", str(kept))
    assert code == 0, output
    text = file.read_text("utf-8")
    assert text.splitlines()[0] == HEADER
    rows = list(csv.DictReader(io.StringIO(text)))
    policies = ["Random", *DETERMINISTIC]
    metrics = ["alloc_pct", "frag_ratio_pct", "frag_amount_pct"]
    assert [(row["policy"], row["seed"], row["metric"]) for row in rows] == [
        (policy, seed, metric) for policy in policies for seed in "12" for metric in metrics
    ]
    assert {row["trace"] for row in rows} == {"small"}
    assert all(policy in output for policy in policies)
    # The second run takes the results from the file.
    before = kept.read_bytes()
    assert run("--seeds", "1-2", "--csv", str(file), "--resume", str(kept))[0] == 0
    assert kept.read_bytes() == before
    assert file.read_text("utf-8") == text


@pytest.mark.usefixtures("installed")
def test_results_of_another_version_of_the_plugins_are_not_kept(
    run: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ("--policies", "BestFit", "--seeds", "1", "--resume", str(tmp_path / "kept.jsonl"))
    assert run(*flags)[0] == 0
    monkeypatch.setattr(
        "stowage.cli.simulate.openb_input.plugin_versions", lambda: {"BestFit": "0.2.0"}
    )
    code, output = run(*flags)
    assert code == 0
    assert "run again, because their inputs have changed: 1" in output


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["default-1.36", "default-1.12"])
def test_a_policy_may_be_a_file(run: Callable[..., tuple[int, str]], name: str) -> None:
    code, output = run("--policies", str(PACKAGE / f"{name}.yaml"), "--seeds", "1")
    assert code == 0, output
    assert name in output


@pytest.mark.usefixtures("installed")
def test_a_policy_that_shares_no_gpus_fails_alone(
    run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    plain = tmp_path / "plain.yaml"
    plain.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n", "utf-8"
    )
    code, output = run("--policies", f"{plain},BestFit", "--seeds", "1")
    assert code == 1
    assert "small/plain/1: the policy notes no GPUs of the pods it places, expected" in output
    assert "BestFit" in output


def test_a_missing_package_is_named_before_the_first_experiment(
    run: Callable[..., tuple[int, str]],
) -> None:
    code, output = run("--policies", "FGD")
    assert code == 1
    assert "pip install ./examples/gpushare" in output


@pytest.mark.parametrize("policies", ["Best", "", "BestFit,all"])
def test_an_unknown_or_repeated_policy_is_refused(
    run: Callable[..., tuple[int, str]], policies: str
) -> None:
    code, output = run("--policies", policies)
    assert code == 1
    assert "--policies" in output


def test_a_malformed_line_is_named(run: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_bytes(b"name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,one,1000\n")
    code, output = run("--pods", str(bad))
    assert code == 1
    assert f"{bad}:2: num_gpu: 'one' (expected a whole number of 0 to 1000)" in output


def test_the_command_is_one_of_simulate() -> None:
    from stowage.cli.simulate import app as simulate

    result = CliRunner().invoke(simulate, ["openb", "--help"])
    assert result.exit_code == 0
    assert "NODES.csv" in result.output
