"""``stowage simulate`` compares policies on workloads, and keeps what is finished."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from typer.testing import CliRunner

from stowage.analysis.simulation.result import ExperimentFailed, ExperimentResult
from stowage.analysis.simulation.run import simulate
from stowage.cli.main import app
from stowage.cli.simulate import command
from stowage.cli.simulate.policies import read_policies
from stowage.experiments import workload_experiment
from tests.support.builders import make_pod
from tests.support.engines import configuration_of, fit_profile
from tests.support.recorded_cluster import RecordedCluster
from tests.support.workloads import nodes_of, pods_of, written_workload

SPEC = {
    "duration": "60s",
    "nodes": [nodes_of(3)],
    "pods": [pods_of(arrivals={"process": "poisson", "perSecond": 0.2}, lifetime="30s")],
}


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(
        app, ["simulate", *map(str, arguments), "--workers", "1"], terminal_width=200
    )
    return done.exit_code, done.stdout, done.stderr


def answer(*arguments: object) -> Any:
    status, out, err = run(*arguments, "-o", "json")
    assert (status, err) == (0, "")
    return msgspec.json.decode(out)


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    return write(tmp_path / "workload.yaml", written_workload(**SPEC))


def write(path: Path, *documents: object) -> Path:
    path.write_text(yaml.safe_dump_all(documents))
    return path


def packing(folder: Path) -> Path:
    return write(folder / "packing.yaml", configuration_of(fit_profile("MostAllocated", "stowage")))


def test_policies_are_compared_on_the_same_arrivals(workload: Path, tmp_path: Path) -> None:
    found = answer(
        workload,
        "--config",
        packing(tmp_path),
        "--weights",
        "spread:NodeResourcesFit=0",
        "--seeds",
        "1-3",
    )
    assert found["experiments"] == len(found["results"]) == 6
    assert [each["policy"] for each in found["policies"]] == ["packing", "spread"]
    first, second = found["policies"]
    assert first["seeds"] == [1, 2, 3]
    assert first["metrics"]["pods"] == second["metrics"]["pods"]
    assert first["differences"] == {}
    used = [
        {
            each["seed"]: each["metrics"]["nodes_used"]
            for each in found["results"]
            if each["policy"] == name
        }
        for name in ("packing", "spread")
    ]
    differences = [used[1][seed] - used[0][seed] for seed in (1, 2, 3)]
    assert second["differences"]["nodes_used"]["mean"] == pytest.approx(sum(differences) / 3)


def test_the_table_shows_means_intervals_and_differences(workload: Path, tmp_path: Path) -> None:
    status, out, err = run(
        workload,
        "--config",
        packing(tmp_path),
        "--weights",
        "spread:NodeResourcesFit=0",
        "--seeds",
        "1,2",
    )
    assert (status, err) == (0, "")
    assert "test: mean of 2 seeds ± 95 % confidence interval" in out
    assert "Difference to packing, seed by seed" in out
    assert any(line.startswith("nodes_used") and "±" in line for line in out.splitlines())
    assert "not run" not in out


def test_one_seed_has_no_interval(workload: Path) -> None:
    status, out, _ = run(workload)
    assert status == 0
    assert "test: one seed" in out
    assert "±" not in out
    assert "default" in out


def test_the_default_profile_can_be_named_beside_files(workload: Path, tmp_path: Path) -> None:
    found = answer(workload, "--config", "default", "--config", packing(tmp_path))
    assert [each["policy"] for each in found["policies"]] == ["default", "packing"]
    assert found["policies"][1]["differences"]["nodes_used"]["mean"] < 0


def test_the_whole_answer_is_written_to_a_file(workload: Path, tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    status, _, _ = run(workload, "--json", file)
    assert status == 0
    written = msgspec.json.decode(file.read_bytes())
    names = {each["name"] for each in written["results"][0]["series"]}
    assert {"pending", "allocated_cpu_pct", "wait_p99_s"} <= names


def test_a_file_that_cannot_be_written_does_not_lose_the_answer(workload: Path) -> None:
    status, out, err = run(workload, "--json", "/dev/full")
    assert status == 1
    assert "No space left on device" in err
    assert "pods" in out


def test_objects_in_other_files_are_in_the_cluster(tmp_path: Path) -> None:
    node = {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": "real"},
        "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "9"}},
    }
    dump = write(tmp_path / "dump.yaml", {"kind": "List", "apiVersion": "v1", "items": [node]})
    file = write(tmp_path / "w.yaml", written_workload(pods=[pods_of(count=3)]))
    found = answer(dump, file)
    assert found["policies"][0]["metrics"]["bound"]["mean"] == 2
    assert found["policies"][0]["failed"] == {"Insufficient cpu": 1}


def test_a_recording_is_a_workload(tmp_path: Path) -> None:
    cluster = RecordedCluster(("a", "b"), cpu="4")
    for number in range(3):
        cluster.create_pods([make_pod(f"p{number}", cpu="1", scheduler_name="stowage")])
        cluster.advance(10.0)
    found = answer(cluster.write(tmp_path / "day.recording"))
    assert [each["trace"] for each in found["policies"]] == ["day"]
    assert found["policies"][0]["metrics"]["bound"]["mean"] == 3


REFUSED: dict[str, tuple[str, str]] = {
    "an unknown field": (
        "kind: Workload\nspec:\n  nodes:\n  - name: a\n    cuont: 3\n",
        "w.yaml:5: spec.nodes[0].cuont: 3 (expected no such field; did you mean count?)",
    ),
    "the second document": (
        "kind: Namespace\nmetadata: {name: x}\n---\nkind: Workload\nspec:\n  drain: maybe\n",
        'w.yaml:6: spec.drain: "maybe" (expected true or false)',
    ),
    "no workload": ("kind: Namespace\nmetadata: {name: x}\n", "an object of kind Workload"),
    "no YAML": ("kind: [", "w.yaml: expected JSON or YAML"),
    "an object": ("kind: Pod\nmetadata: {}\n", "Pod: metadata.name: expected a name"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_an_error_names_file_line_and_field(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(text)
    status, out, err = run(file)
    assert (status, out) == (1, "")
    assert message in err


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    status, _, err = run(tmp_path / "none.yaml")
    assert status == 1
    assert "none.yaml: No such file or directory" in err


def test_a_policy_that_does_not_load_stops_before_the_first_experiment(
    workload: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload_experiment, "simulate", pytest.fail)
    bad = write(
        tmp_path / "bad.yaml",
        configuration_of({"plugins": {"multiPoint": {"enabled": [{"name": "None"}]}}}),
    )
    for flags, message in (
        (("--config", bad), "None"),
        (("--weights", "NodeName=3"), "NodeName"),
        (("--config", packing(tmp_path), "--config", packing(tmp_path)), "different names"),
    ):
        status, out, err = run(workload, *flags)
        assert (status, out) == (1, "")
        assert message in err


@pytest.mark.parametrize("seeds", ["", "x", "5-3", "1--2", "-4", "9" * 5000])
def test_seeds_are_numbers_and_ranges(seeds: str, workload: Path) -> None:
    status, _, err = run(workload, f"--seeds={seeds}")
    assert status == 2
    assert "expected" in err
    assert command.parse_seeds("7,1-3,2") == [7, 1, 2, 3]


def failing_at(seed: int, error: BaseException) -> Callable[..., ExperimentResult]:
    def experiment(workload: Any, policy: Any, at: int) -> ExperimentResult:
        if at == seed:
            raise error
        return simulate(workload, policy, at)

    return experiment


def test_a_failed_experiment_does_not_end_the_others(
    workload: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = ExperimentFailed("Pod default/p: Mine: out of [paper]")
    monkeypatch.setattr(workload_experiment, "simulate", failing_at(2, failure))
    status, out, _ = run(workload, "--seeds", "1-3")
    assert status == 1
    assert "no result: test, default, seed 2: Pod default/p: Mine: out of [paper]" in out
    assert "mean of 2 seeds" in out


def test_an_interrupt_keeps_what_is_finished(
    workload: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload_experiment, "simulate", failing_at(3, KeyboardInterrupt()))
    file = tmp_path / "answer.json"
    status, out, _ = run(workload, "--seeds", "1-5", "--json", file)
    assert status == 130
    assert "3 of 5 experiments were not run" in out
    assert [each["seed"] for each in msgspec.json.decode(file.read_bytes())["results"]] == [1, 2]


def test_a_policy_can_be_pickled(tmp_path: Path) -> None:
    policies = read_policies(
        [packing(tmp_path)], ["b:NodeResourcesFit=2"], ["GenericWorkload=true"]
    )
    assert pickle.loads(pickle.dumps(policies)) == policies


def test_a_recorded_experiment_is_repeated_decision_by_decision(
    workload: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "recorded"
    (found,) = answer(workload, "--record", folder)["results"]
    (file,) = folder.iterdir()
    repeated = CliRunner().invoke(app, ["replay", str(file), "-o", "json"])
    assert (repeated.exit_code, repeated.stderr) == (0, "")
    report = msgspec.json.decode(repeated.stdout)
    assert sum(report["attempts"].values()) == found["metrics"]["attempts"]
    assert report["end"] == "the simulation ended"


def test_a_recording_changes_nothing_of_the_result(workload: Path, tmp_path: Path) -> None:
    assert answer(workload, "--record", tmp_path)["results"] == answer(workload)["results"]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--seeds", "1-3"), "3 experiments (expected one workload, one policy and one seed)"),
        (("--weights", "NodeResourcesFit=0"), "2 experiments"),
        (("--resume", "results"), "no --dask and no --resume"),
    ],
)
def test_only_one_experiment_of_this_process_is_recorded(
    workload: Path, tmp_path: Path, flags: tuple[str, ...], expected: str
) -> None:
    folder = tmp_path / "recorded"
    status, _, err = run(workload, "--record", folder, *flags)
    assert (status, expected in err.replace("\n", " ")) == (2, True)
    assert not folder.exists()


def test_pods_of_a_scheduler_that_no_profile_has_are_named(tmp_path: Path) -> None:
    spec = {**SPEC, "pods": [pods_of(count=1, pod_spec={"schedulerName": "volcano"})]}
    workload = write(tmp_path / "workload.yaml", written_workload(**spec))
    text = (
        "test: no profile of default has the scheduler name volcano of some pods: the profile "
        "stowage decides instead"
    )
    assert text in answer(workload)["notes"]
    plain = write(tmp_path / "plain.yaml", written_workload(**SPEC))
    assert all("scheduler name" not in note for note in answer(plain)["notes"])
