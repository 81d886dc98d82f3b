"""A short run under chaos, with real processes: everything goes wrong, and no promise is broken."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.support.patience import PATIENCE_S

SHORT = ("--minutes=0.35", "--nodes=40", "--rate=15", "--seed=7", "--recovery-limit=180", "--json")


def test_the_scheduler_keeps_its_promises_while_everything_goes_wrong() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "scheduler.cli", "bench", "chaos", *SHORT],
        capture_output=True,
        check=False,
        text=True,
        timeout=5 * PATIENCE_S,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    result = json.loads(answer.stdout)
    assert result["violations"] == []
    assert result["counts"]["pods bound"] > 100
    assert result["recovered_after_last_fault_s"] is not None
    assert sum(result["requests_hit"].values()) > 10
    for trouble in ("leader killed", "leader stopped (SIGSTOP)", "server away longer than a lease"):
        assert result["trouble"][trouble] >= 1
    assert result["exits"]["SIGKILL"] >= 1
