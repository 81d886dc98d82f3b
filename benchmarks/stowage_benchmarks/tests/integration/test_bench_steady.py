"""The benchmark under steady load, with scheduler processes and few pods."""

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage_benchmarks.tests.integration.bench_process import bench

SMALL = ("--nodes=20", "--running=10", "--rate=20", "--rate=40", "--seconds=1")


def test_a_running_scheduler_is_measured_at_a_constant_rate() -> None:
    report = bench("steady", *SMALL, timeout_s=4 * WAIT_TIMEOUT_S)
    assert report["calibration_ms"] > 0
    (result,) = report["results"]
    assert [(each["rate"], each["pods"], each["bound"]) for each in result["rates"]] == [
        (20.0, 20, 20),
        (40.0, 40, 40),
    ]
    for each in result["rates"]:
        # At least a binding; a slow machine adds status patches and renewals of the Lease.
        assert each["requests_per_pod"] >= 1.0
        assert 0 < each["p50_ms"] <= each["p99_ms"] <= each["max_ms"]
    assert result["ready_s"] > 0
    assert result["first_bind_s"] > 0
    assert result["hand_over_s"] > 0
    assert result["problems"] == []
