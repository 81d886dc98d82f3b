"""Results of the end-to-end benchmark: rates, costs, problems, tables and charts."""

from io import StringIO
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from simcluster.harness.audit import ClusterState
from simcluster.harness.placements import Placement
from stowage_benchmarks.contender import OURS
from stowage_benchmarks.e2e.report import plot_results, print_results
from stowage_benchmarks.e2e.result import Cost, Drain, E2EResult, e2e_result
from stowage_benchmarks.e2e.scenarios import Size
from tests.support.builders import make_node, make_pod


def bound(name: str, node: str, at: float) -> Placement:
    placement = Placement(make_pod(name), created_at=0.0)
    placement.see(make_pod(name, node=node, cpu="1"), at)
    return placement


def result_of(*placements: Placement, num_pods: int | None = None) -> E2EResult:
    nodes = [make_node(name, cpu="2") for name in ("n", "m")]
    return e2e_result(
        Drain(OURS, "basic", Size(2, 0, num_pods or len(placements))),
        placements,
        ClusterState(nodes, [placement.pod for placement in placements]),
        started_at=10.0,
        cost=Cost(cpu_s=0.9, cpu_s_at_first_bind=0.6, peak_memory_mib=100.4),
    )


def test_rates_and_costs_are_computed() -> None:
    result = result_of(bound("a", "n", 11.0), bound("b", "n", 11.5), bound("c", "m", 12.0))
    # 2 further bindings in the second after the first; 900 ms and 300 ms over 3 pods.
    assert (result.bound, result.binds_per_s) == (3, 2.0)
    assert (result.first_bind_s, result.last_bind_s) == (1.0, 2.0)
    assert (result.cpu_ms_per_pod, result.cpu_ms_per_pod_after_first_bind) == (300.0, 100.0)
    assert (result.rss_mib, result.max_on_node, result.nodes_used) == (100.0, 2, 2)
    assert result.problems == ()


def test_costs_are_computed_even_if_all_bindings_are_seen_at_one_instant() -> None:
    result = result_of(bound("a", "n", 11.0), bound("b", "m", 11.0))
    assert (result.binds_per_s, result.first_bind_s, result.cpu_ms_per_pod) == (None, 1.0, 450.0)


def test_an_unbound_pod_is_a_problem() -> None:
    unbound = Placement(make_pod("b"), created_at=0.0)
    result = result_of(bound("a", "n", 11.0), unbound)
    assert result.problems == ("1 pods were bound of 2",)
    assert result.binds_per_s is None


def test_a_pod_bound_twice_is_a_problem() -> None:
    twice = bound("a", "n", 11.0)
    twice.see(make_pod("a", node="m"), 12.0)
    assert result_of(twice).problems == ("pod default/a was seen on n and m",)


def test_an_overcommitted_node_is_a_problem() -> None:
    placements = [bound(name, "n", 11.0) for name in "abc"]
    assert result_of(*placements).problems == ("node n: cpu 3000 requested of 2000",)


def printed(*results: E2EResult) -> list[str]:
    output = StringIO()
    print_results(Console(file=output, width=140), results)
    return output.getvalue().splitlines()


def test_the_table_shows_the_best_of_the_runs_and_the_worst_in_brackets() -> None:
    good = result_of(bound("a", "n", 11.0), bound("b", "m", 12.0))
    bad = replace(good, binds_per_s=0.5, cpu_ms_per_pod=900.0, first_bind_s=None)
    (row,) = (line for line in printed(good, bad) if "basic" in line)
    cells = row.split()
    assert cells[:6] == ["basic", "stowage", "2", "0", "2", "2"]
    assert cells[6:] == ["1", "(0.5)", "1", "450", "(900)", "150", "100"]


def test_each_workload_size_and_scheduler_has_a_row() -> None:
    one = result_of(bound("a", "n", 11.0), bound("b", "m", 12.0))
    lines = printed(one, replace(one, nodes=7), replace(one, scheduler="kube-scheduler"))
    assert sum("basic" in line for line in lines) == 3


def test_a_problem_is_printed_below_the_table() -> None:
    lines = printed(result_of(Placement(make_pod("b"), created_at=0.0)))
    assert lines[-1] == "failed: basic: 0 pods were bound of 1"


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_results_are_drawn_as_a_chart(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"bench.{suffix}"
    plot_results([result_of(bound("a", "n", 11.0), bound("b", "m", 12.0))], file)
    assert file.stat().st_size > 1000


def test_an_unknown_image_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="format"):
        plot_results([result_of(bound("a", "n", 11.0))], tmp_path / "bench.doc")
