"""``stowage tune`` writes a configuration that says what it gains, and on which data."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from stowage.analysis.simulation.estimates import Estimate
from stowage.api.config.loading import load_configuration
from stowage.cli.main import app
from stowage.cli.profiles import make_frameworks
from stowage.cli.tune.finding import Finding, Gain
from stowage.experiments.search import Trial
from tests.support.engines import configuration_of
from tests.support.workloads import nodes_of, pods_of, written_workload

SPEC = {
    "duration": "60s",
    "nodes": [nodes_of(4)],
    "pods": [pods_of(arrivals={"process": "constant", "perSecond": 0.2}, lifetime="20s")],
}


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(
        app, ["tune", *map(str, arguments), "--workers", "1"], terminal_width=200
    )
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "workload.yaml"
    path.write_text(yaml.safe_dump(written_workload(**SPEC)))
    return path


def test_the_configuration_loads_and_its_comment_names_data_and_gain(
    workload: Path, tmp_path: Path
) -> None:
    report, storage = tmp_path / "report.html", tmp_path / "trials.journal"
    flags = ("--trials", 8, "--seeds", "1-2", "--report", report, "--storage", storage)
    status, out, _ = run(workload, *flags)
    assert status == 0
    configuration = load_configuration(yaml.safe_load(out))
    weights = make_frameworks(configuration)[0].profile.weights
    assert all(0 < weight <= 10 for weight in weights.values())
    comment = [line for line in out.splitlines() if line.startswith("#")]
    assert comment[0].startswith("# Made by: stowage")
    assert "# Searched on the first 70% of the time of test, seeds 1, 2:" in comment
    assert "# Held back: the rest of the time, seeds 3, 4, 5, 6, 7:" in comment
    assert sum("nodes_used" in line for line in comment) == 2
    assert "the gain is" in report.read_text()
    status, again, err = run(workload, *flags)
    assert f"trials from {storage}: 8" in err
    assert again == out


def test_a_search_of_other_flags_does_not_use_the_storage(workload: Path, tmp_path: Path) -> None:
    flags = ("--trials", 1, "--seeds", 1, "--storage", tmp_path / "trials.journal")
    assert run(workload, *flags)[0] == 0
    status, out, err = run(workload, *flags, "--objective", "balance")
    assert (status, out) == (1, "")
    assert "it is of a search with other inputs or flags" in err


def test_a_configuration_that_does_not_load_stops_before_the_search(
    workload: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.yaml"
    unknown = {"plugins": {"multiPoint": {"enabled": [{"name": "None"}]}}}
    bad.write_text(yaml.safe_dump(configuration_of(unknown)))
    status, out, err = run(workload, "--config", bad)
    assert (status, out) == (1, "")
    assert "None" in err


def test_a_missing_extra_is_named(workload: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stowage.experiments.extra.find_spec", lambda _module: None)
    status, _, err = run(workload)
    assert status == 1
    assert "stowage tune needs the package optuna" in err
    assert "Stowage's extra simulate has it" in err


def _gain(metric: str, mean: float, margin: float | None) -> Gain:
    return Gain(metric, 10.0, 10.0 + mean, Estimate(mean, margin))


@pytest.mark.parametrize(
    ("trained", "held_back", "is_confirmed"),
    [
        ([(-2, 1), (0, 0)], [(-2, 1), (0, 0)], True),
        ([(-2, 1), (0, 0)], [(-2, 3), (0, 0)], False),  # the interval contains 0
        ([(-2, 1), (0, 0)], [(2, 1), (0, 0)], False),
        ([(-2, 1), (0, 0)], [(-2, 1), (3, 1)], False),  # worse, which the search did not show
        ([(-2, 1), (3, 1)], [(-2, 1), (3, 1)], True),  # the price was known
        ([(-2, None), (0, None)], [(-2, None), (0, None)], True),  # one seed
    ],
)
def test_a_gain_is_confirmed_by_the_held_back_arrivals(
    trained: list[tuple[float, float | None]],
    held_back: list[tuple[float, float | None]],
    is_confirmed: bool,
) -> None:
    metrics = ("nodes_used", "imbalance")
    finding = Finding(
        Trial(1, {}),
        [_gain(metric, *each) for metric, each in zip(metrics, trained, strict=True)],
        [_gain(metric, *each) for metric, each in zip(metrics, held_back, strict=True)],
    )
    assert finding.is_confirmed == is_confirmed


@pytest.mark.parametrize(
    ("gain", "text"),
    [
        (
            Gain("nodes_used", 20.0, 15.0, Estimate(-5.0, 0.25)),
            "nodes_used 20 -> 15, difference -5 ± 0.25 (-25.0%)",
        ),
        (
            Gain("failed", 2112.5, 872.0, Estimate(-1240.5, 1730.0)),
            "failed 2112.5 -> 872, difference -1,240 ± 1,700 (-58.7%)",
        ),
    ],
)
def test_a_gain_reads_as_before_after_and_difference(gain: Gain, text: str) -> None:
    assert str(gain) == text
