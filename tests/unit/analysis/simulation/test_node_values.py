"""The values of a sample agree with sums node by node, pod by pod."""

from __future__ import annotations

from math import sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowage.analysis.simulation.node_values import node_values
from stowage.api.events import AssignedPodSeen, NodeGone, NodeSeen
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine

GPU = "example.com/gpu"
RESOURCES = ("cpu", "memory", GPU)
AMOUNTS = st.tuples(st.integers(0, 4), st.integers(1, 4), st.integers(0, 2))
NODES = st.lists(
    st.tuples(
        st.tuples(st.integers(0, 8), st.integers(1, 8), st.integers(0, 4)), st.integers(1, 3)
    ),
    max_size=4,
)
PLACED = st.lists(st.tuples(st.integers(0, 3), AMOUNTS), max_size=6)
RECENT = st.lists(AMOUNTS, max_size=5)

Amounts = tuple[int, int, int]
Nodes = list[tuple[Amounts, int]]


def amounts(values: Amounts) -> dict[str, str]:
    cpu, memory, gpus = values
    named = {"cpu": str(cpu), "memory": f"{memory}Gi"}
    return named | ({GPU: str(gpus)} if gpus else {})


def scaled(values: Amounts) -> dict[str, int]:
    return dict(zip(RESOURCES, (values[0] * 1000, values[1] * 2**30, values[2]), strict=True))


def scalar_values(
    nodes: Nodes, placed: list[tuple[int, Amounts]], recent: list[Amounts]
) -> dict[str, float]:
    """The same values in plain Python."""
    used = [
        {
            name: sum(scaled(each)[name] for row, each in placed if row == number)
            for name in RESOURCES
        }
        for number in range(len(nodes))
    ]
    pods = [sum(row == number for row, _ in placed) for number in range(len(nodes))]
    has = [scaled(each) for each, _ in nodes]
    names = [name for name in RESOURCES if any(each[name] for each in has)]
    values: dict[str, float] = {"nodes": len(nodes), "nodes_used": sum(map(bool, pods))}
    deviations, losses = [], []
    for name in names:
        owners = [number for number in range(len(nodes)) if has[number][name]]
        shares = [100 * used[number][name] / has[number][name] for number in owners]
        mean = sum(shares) / len(shares)
        deviations.append(sqrt(sum((each - mean) ** 2 for each in shares) / len(shares)))
        taken = sum(used[number][name] for number in owners)
        values[f"allocated_{name}_pct"] = 100 * taken / sum(each[name] for each in has)
    free = [
        {name: max(0, has[number][name] - used[number][name]) for name in RESOURCES}
        for number in range(len(nodes))
    ]
    for name in names:
        total = sum(each[name] for each in free)
        wanting = [scaled(each) for each in recent if scaled(each)[name]]
        if not total or not wanting:
            continue
        lost = [
            sum(
                free[number][name]
                for number in range(len(nodes))
                if pods[number] >= nodes[number][1]
                or any(want[each] > free[number][each] for each in names if want[each])
            )
            for want in wanting
        ]
        losses.append(100 * sum(lost) / len(lost) / total)
    values["imbalance"] = sum(deviations) / len(deviations) if deviations else 0.0
    values["fragmentation"] = sum(losses) / len(losses) if losses else 0.0
    return values


@given(NODES, PLACED, RECENT)
def test_sampled_values_agree_with_sums_of_single_nodes_and_pods(
    nodes: Nodes, placed: list[tuple[int, Amounts]], recent: list[Amounts]
) -> None:
    placed = [(row, each) for row, each in placed if row < len(nodes)]
    engine = default_engine()
    events: list[Any] = [NodeSeen(make_node("gone", cpu="9")), NodeGone("gone")]
    events += [
        NodeSeen(make_node(f"n{row}", pods=pods, allocatable=amounts(each)))
        for row, (each, pods) in enumerate(nodes)
    ]
    events += [
        AssignedPodSeen(make_pod(f"p{number}", requests=amounts(each), node=f"n{row}"))
        for number, (row, each) in enumerate(placed)
    ]
    engine.handle(events, 0.0)
    found = node_values(engine.state.cache.snapshot(), [scaled(each) for each in recent])
    assert found == pytest.approx(scalar_values(nodes, placed, recent))


def test_what_no_recent_pod_can_use_is_fragmented() -> None:
    """3 and 1 CPUs are free, and pods want 2: 1 of 4 is of no use. All memory is of use on `a`."""
    engine = default_engine()
    engine.handle([NodeSeen(make_node("a", cpu="3")), NodeSeen(make_node("b", cpu="1"))], 0.0)
    found = node_values(engine.state.cache.snapshot(), [{"cpu": 2000}])
    assert found["fragmentation"] == 25.0
