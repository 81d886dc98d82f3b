"""Results of the benchmark under steady load: latencies, costs, requests, tables."""

from io import StringIO

from rich.console import Console

from stowage_benchmarks.steady.report import print_steady_results
from stowage_benchmarks.steady.request_count import sum_of_requests
from stowage_benchmarks.steady.result import Load, SteadyResult, rate_result


def test_latencies_are_from_the_create_request_to_the_binding() -> None:
    sent_at = {f"p{index}": float(index) for index in range(100)}
    bound_at = {name: at + 0.001 * (index + 1) for index, (name, at) in enumerate(sent_at.items())}
    result = rate_result(Load(50.0, sent_at, bound_at, cpu_s=0.2, num_requests=201.0))
    assert (result.pods, result.bound) == (100, 100)
    assert (result.p50_ms, result.p90_ms, result.p99_ms, result.max_ms) == (
        51.0,
        91.0,
        100.0,
        100.0,
    )
    assert (result.cpu_ms_per_pod, result.requests_per_pod) == (2.0, 2.01)


def test_a_load_without_bindings_has_no_latencies() -> None:
    result = rate_result(Load(1.0, {"p": 0.0}, {}, cpu_s=0.1, num_requests=None))
    assert (result.bound, result.p50_ms, result.requests_per_pod) == (0, None, None)


def test_a_server_that_counts_nothing_has_no_sum() -> None:
    assert sum_of_requests("other_total 3\n") is None


def test_the_tables_show_rates_process_calibration_and_problems() -> None:
    rate = rate_result(Load(50.0, {"p": 0.0}, {"p": 0.01}, cpu_s=0.002, num_requests=2.0))
    result = SteadyResult(
        "stowage", "basic", 1000, 900, [rate], hand_over_s=1.25, problems=("pod x",)
    )
    output = StringIO()
    print_steady_results(Console(file=output, width=160), [result], 3.5)
    text = output.getvalue()
    rows = [line.split() for line in text.splitlines() if line.strip().startswith("basic")]
    assert rows[0] == ["basic", "stowage", "1,000", "900", "50", "2", "2", "10", "10", "10", "10"]
    assert rows[1] == ["basic", "stowage", "1,000", "900", "-", "-", "-", "-", "1.25", "-"]
    assert "calibration: 3.5 ms" in text
    assert text.splitlines()[-1] == "failed: basic: pod x"
