"""The drain benchmark measures a real scheduler process; here with numbers that take seconds."""

import json
import subprocess
import sys

import pytest

STOWAGE = [sys.executable, "-m", "scheduler.cli"]


@pytest.mark.parametrize("workload", ["mixed"])
def test_a_small_drain_binds_every_pod_once(workload: str) -> None:
    answer = subprocess.run(
        [
            *STOWAGE,
            "bench",
            "drain",
            "--nodes=40",
            "--init=40",
            "--pods=80",
            f"--workload={workload}",
            "--timeout=40",
            "--json",
        ],
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    result = json.loads(answer.stdout)
    assert result["bound"] == result["pods"] == 80
    assert result["problems"] == []
    assert result["binds_per_s"] > 0
    assert result["cpu_ms_per_pod"] > result["cpu_ms_per_pod_after_first_bind"] > 0
    assert result["rss_mib"] > 0
