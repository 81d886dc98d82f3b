"""A short run of the chaos benchmark with scheduler processes: all faults, no violation."""

from __future__ import annotations

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage_benchmarks.chaos import plan as chaos_plan
from stowage_benchmarks.tests.integration.bench_process import bench

SHORT = (
    *("--minutes=0.35", "--nodes=40", "--rate=15", "--seed=7"),
    *("--claims", "--gangs"),
    *("--recovery-limit=180", "--takeover-allowance=60"),
)
#: Not `AWAY_IN_BINDING`: a slow machine may have no binding in flight in so short a run.
KINDS = (
    chaos_plan.API_FAULT,
    chaos_plan.KILL_LEADER,
    chaos_plan.RETIRE_LEADER,
    chaos_plan.STOP_LEADER,
    chaos_plan.AWAY,
    chaos_plan.AWAY_LONG,
    chaos_plan.RESTART_FORGETTING,
    chaos_plan.EDIT_CONFIG,
    chaos_plan.CYCLE_NODE,
    chaos_plan.JUMP_CLOCK,
    chaos_plan.STORE_SILENT,
    chaos_plan.RESTORE,
    chaos_plan.RESTORE_BUMPED,
    chaos_plan.KILL_IN_PEACE,
    chaos_plan.RETIRE_IN_PEACE,
)


def test_a_run_with_all_kinds_of_faults_has_no_violation() -> None:
    result = bench("chaos", *SHORT, timeout_s=5 * WAIT_TIMEOUT_S)
    assert result["violations"] == []
    assert result["counts"]["pods bound"] > 100
    assert result["recovered_after_last_fault_s"] is not None
    assert sum(result["requests_hit"].values()) >= 1
    for trouble in KINDS:
        assert result["trouble"].get(trouble, 0) >= 1, trouble
    assert result["counts"]["pods with volumes bound"] >= 1
    assert result["counts"]["pods with devices bound"] >= 1
    assert result["counts"]["gangs bound"] >= 1
    assert result["counts"]["pods bound by another scheduler"] >= 1
    recovered = {each["kind"]: each for each in result["recoveries"]}
    for kind in (chaos_plan.KILL_IN_PEACE, chaos_plan.RETIRE_IN_PEACE):
        assert recovered[kind]["unrecovered"] == 0
    assert result["exits"]["SIGKILL"] >= 1
