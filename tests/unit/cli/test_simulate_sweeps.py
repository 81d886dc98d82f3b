"""``stowage simulate`` keeps results, takes them up again, and writes them in other formats."""

from __future__ import annotations

import csv
import pickle
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from typer.testing import CliRunner

from stowage.cli.main import app
from stowage.cli.simulate.policies import read_policies
from stowage.cli.simulate.workload_files import read_workloads
from stowage.experiments.workload_experiment import Fingerprints, WorkloadExperiment
from tests.support.builders import make_pod
from tests.support.recorded_cluster import RecordedCluster
from tests.support.workloads import nodes_of, pods_of, written_workload

SPEC: dict[str, Any] = {
    "duration": "60s",
    "nodes": [nodes_of(3)],
    "pods": [pods_of(arrivals={"process": "poisson", "perSecond": 0.2}, lifetime="30s")],
}


def run(*arguments: object) -> tuple[int, str, str]:
    words = ["simulate", *map(str, arguments)]
    done = CliRunner().invoke(app, words, terminal_width=200)
    return done.exit_code, done.stdout, done.stderr


def write_workload(path: Path, **changes: Any) -> Path:
    path.write_text(yaml.safe_dump(written_workload(**{**SPEC, **changes})))
    return path


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    return write_workload(tmp_path / "workload.yaml")


def test_a_resumed_sweep_runs_what_is_missing_and_gives_the_same_answer(
    workload: Path, tmp_path: Path
) -> None:
    results = tmp_path / "results.jsonl"
    flags = (workload, "--resume", results, "--workers", 1, "-o", "json")
    assert run(*flags, "--seeds", "1-2")[0] == 0
    status, resumed, err = run(*flags, "--seeds", "1-4")
    assert (status, err) == (0, f"results from {results}: 2\n")
    assert resumed == run(workload, "--workers", 1, "-o", "json", "--seeds", "1-4")[1]
    assert len(results.read_text().splitlines()) == 5


def test_a_workload_that_has_changed_is_run_again(workload: Path, tmp_path: Path) -> None:
    flags = ("--resume", tmp_path / "results.jsonl", "--workers", 1)
    _, before, _ = run(workload, *flags)
    write_workload(workload, nodes=[nodes_of(4)])
    status, after, err = run(workload, *flags)
    assert status == 0
    assert "run again, because their inputs have changed: 1" in err
    assert before != after
    policy = ("--weights", "ImageLocality=5")
    assert "results.jsonl: 1" in run(workload, *flags, *policy)[2]


def test_files_of_results_are_written_beside_the_answer(workload: Path, tmp_path: Path) -> None:
    table, page, parquet = (tmp_path / name for name in ("r.csv", "r.html", "r.parquet"))
    flags = ("--csv", table, "--report", page, "--parquet", parquet, "--workers", 1)
    status, out, _ = run(workload, *flags, "-o", "json")
    assert status == 0
    (result,) = msgspec.json.decode(out)["results"]
    with table.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert {row["metric"]: float(row["value"]) for row in rows} == result["metrics"]
    assert "<h2>test</h2>" in page.read_text()
    assert parquet.stat().st_size > 0


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        (("--report", "report.pdf"), 2, "expected a name that ends in .html"),
        (("--workers", "2", "--dask", "tcp://127.0.0.1:1"), 2, "not with --dask"),
        (("--resume", "/"), 2, "is a directory"),
        (("--csv", "/nowhere/r.csv"), 2, "--csv: /nowhere/r.csv (expected a file in a folder"),
        (("--json", "/nowhere/r.json"), 2, "--json: /nowhere/r.json (expected a file in a folder"),
        (("--csv", "/dev/full", "--workers", "1"), 1, "No space left on device"),
    ],
)
def test_what_cannot_be_done_is_named(
    workload: Path, flags: tuple[str, ...], status: int, message: str
) -> None:
    found, _, err = run(workload, *flags)
    assert found == status
    assert message in " ".join(err.split())


def test_a_recording_and_its_hash_are_the_same_in_another_process(tmp_path: Path) -> None:
    cluster = RecordedCluster(("a", "b"), cpu="4")
    for number in range(3):
        cluster.create_pods([make_pod(f"p{number}", cpu="1", scheduler_name="stowage")])
        cluster.advance(10.0)
    (workload,) = read_workloads([cluster.write(tmp_path / "day.recording")])
    (policy,) = read_policies((), (), ())
    fingerprint = Fingerprints().of(workload, policy, 1)
    sent = pickle.loads(pickle.dumps(WorkloadExperiment(workload, policy, 1, fingerprint)))
    assert sent.run() == WorkloadExperiment(workload, policy, 1).run()
    assert Fingerprints().of(sent.workload, policy, 1) == fingerprint


def test_a_file_that_holds_no_results_is_left_alone(workload: Path) -> None:
    before = workload.read_bytes()
    status, out, err = run(workload, "--resume", workload)
    assert (status, out) == (1, "")
    assert "workload.yaml:1: expected a file of results" in err
    assert workload.read_bytes() == before


def test_a_missing_extra_is_named_before_the_first_experiment(
    workload: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stowage.experiments.extra.find_spec", lambda _module: None)
    for flags in (
        ("--report", tmp_path / "r.html"),
        ("--parquet", tmp_path / "r"),
        ("--workers", 2),
    ):
        status, out, err = run(workload, "--seeds", "1-2", *flags)
        assert (status, out) == (1, "")
        assert "Stowage's extra simulate has it" in err
        assert "pip install" not in err, "stowage on PyPI is another project"
