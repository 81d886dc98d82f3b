"""A drain benchmark's numbers come from instants and kernel counters, and it can fail."""

from scheduler.cli.audit import ClusterState
from scheduler.cli.bench.drain_result import Cost, DrainOptions, DrainResult, drain_result
from scheduler.cli.bench.report import drain_table
from scheduler.cli.placements import Placement
from tests.support.builders import make_node, make_pod


def bound(name: str, node: str, at: float) -> Placement:
    placement = Placement(make_pod(name), created_at=0.0)
    placement.see(make_pod(name, node=node, cpu="1"), at)
    return placement


def result_of(*placements: Placement, num_pods: int | None = None) -> DrainResult:
    nodes = [make_node(name, cpu="2") for name in ("n", "m")]
    return drain_result(
        DrainOptions("basic", 2, 0, num_pods or len(placements), timeout_s=1.0),
        placements,
        ClusterState(nodes, [placement.pod for placement in placements]),
        started_at=10.0,
        cost=Cost(cpu_s=0.9, cpu_s_at_first_bind=0.6, peak_memory_mib=100.4),
    )


def test_rates_and_costs_are_worked_out() -> None:
    result = result_of(bound("a", "n", 11.0), bound("b", "n", 11.5), bound("c", "m", 12.0))
    # 2 further bindings in the second after the first; 900 ms and 300 ms over 3 pods.
    assert (result.bound, result.binds_per_s) == (3, 2.0)
    assert (result.first_bind_s, result.last_bind_s) == (1.0, 2.0)
    assert (result.cpu_ms_per_pod, result.cpu_ms_per_pod_after_first_bind) == (300.0, 100.0)
    assert (result.rss_mib, result.max_on_node, result.nodes_used) == (100.0, 2, 2)
    assert result.problems == ()


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


def test_the_table_has_a_row_for_each_measure() -> None:
    table = drain_table(result_of(bound("a", "n", 11.0), bound("b", "m", 12.0)))
    assert table.row_count == 9
