"""A run that ends early leaves the report of what it had found by then."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from stowage_benchmarks.chaos import run as chaos_run
from stowage_benchmarks.chaos.history import LeaseChange, WriteArrived
from stowage_benchmarks.chaos.judge import ChaosOptions
from stowage_benchmarks.chaos.ledger import Ledger
from stowage_benchmarks.chaos.plan import KILL_LEADER
from stowage_benchmarks.chaos.result import ChaosResult, violations_so_far
from stowage_benchmarks.chaos.run import run_chaos

A = "replica-a"
OPTIONS = ChaosOptions(60.0, seed=1, num_nodes=20, pods_per_s=60.0, recovery_limit_s=1.0)


def _ends_with(error: BaseException, monkeypatch: pytest.MonkeyPatch, pods: int = 5) -> None:
    """Let runs end with an error after some pods, a fault and a violation."""

    async def run(self: chaos_run.ChaosRun) -> ChaosResult:
        if pods:
            self._began_at = time.monotonic() - 10.0
        self._done[KILL_LEADER] += 1
        self._ledger.counts["pods created"] += pods
        lost = WriteArrived(9.0, A, "create", "pods/binding", "p", passed_at=8.0)
        self._ledger.take([LeaseChange(0.0, A, "a1"), lost])
        raise error

    monkeypatch.setattr(chaos_run.ChaosRun, "run", run)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143), OSError("full")])
def test_a_run_that_ends_early_leaves_its_report_so_far(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[str] = []
    file = tmp_path / "report.json"
    _ends_with(BaseExceptionGroup("", [error]), monkeypatch)
    with pytest.raises(type(error)):
        run_chaos(OPTIONS, said.append, None, file)
    assert said == [f"ended early: the report so far is in {file}"]
    report = msgspec.json.decode(file.read_bytes(), type=ChaosResult)
    assert not report.is_complete
    assert (report.minutes, report.trouble, report.counts["pods created"]) == (
        60.0,
        {KILL_LEADER: 1},
        5,
    )
    assert report.seconds >= 10.0
    assert report.longest_wait_s == 1.0
    (violation,) = report.violations
    assert violation.startswith("replica-a sent create pods/binding p 8.00 s after it renewed")
    assert report.cpu_s["benchmark"] >= 0.0
    assert [each.name for each in tmp_path.iterdir()] == ["report.json"]


def test_a_run_that_ends_before_its_first_pod_writes_no_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[str] = []
    _ends_with(KeyboardInterrupt(), monkeypatch, pods=0)
    with pytest.raises(KeyboardInterrupt):
        run_chaos(OPTIONS, said.append, None, tmp_path / "report.json")
    assert said == []
    assert list(tmp_path.iterdir()) == []


def test_a_recovery_that_is_not_over_yet_is_no_violation_so_far() -> None:
    ledger = Ledger("stowage", 4.0)
    under_way = ledger.disturbed(1.0, KILL_LEADER, limit_s=2.0)
    assert list(violations_so_far(ledger)) == []
    under_way.recovered_at = 9.0
    assert list(violations_so_far(ledger)) == [f"no pod was bound for 8.00 s after: {KILL_LEADER}"]
