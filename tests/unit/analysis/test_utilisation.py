"""Shares of resources agree with sums node by node, and are averaged over time."""

from __future__ import annotations

from math import sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowage.analysis.utilisation import Share, UtilisationSamples, requested_shares
from stowage.api.events import AssignedPodSeen, NodeGone, NodeSeen
from stowage.engine import Engine
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine

CPUS = st.lists(st.tuples(st.integers(0, 8), st.lists(st.integers(0, 4), max_size=3)), max_size=5)


def engine_with(nodes: list[tuple[int, list[int]]]) -> Engine:
    """An engine with nodes that have some CPUs, and pods that request some."""
    engine = default_engine()
    events: list[Any] = []
    for row, (cpus, pods) in enumerate(nodes):
        events.append(NodeSeen(make_node(f"n{row}", cpu=str(cpus))))
        events += [
            AssignedPodSeen(make_pod(f"p{row}-{number}", cpu=str(cpu), node=f"n{row}"))
            for number, cpu in enumerate(pods)
        ]
    engine.handle(events, 0.0)
    return engine


def scalar_share(nodes: list[tuple[int, list[int]]]) -> Share | None:
    counted = [(cpus, sum(pods)) for cpus, pods in nodes if cpus]
    if not counted:
        return None
    shares = [taken / cpus for cpus, taken in counted]
    mean = sum(shares) / len(shares)
    deviation = sqrt(sum((each - mean) ** 2 for each in shares) / len(shares))
    return Share(sum(taken for _, taken in counted) / sum(cpus for cpus, _ in counted), deviation)


@given(CPUS)
def test_shares_agree_with_those_of_single_nodes(nodes: list[tuple[int, list[int]]]) -> None:
    found = requested_shares(engine_with(nodes).state.cache.snapshot()).get("cpu")
    expected = scalar_share(nodes)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert found.mean == pytest.approx(expected.mean)
        assert found.deviation == pytest.approx(expected.deviation)


def test_a_sample_counts_for_the_time_before_it() -> None:
    engine, samples = engine_with([(4, [1])]), UtilisationSamples()
    samples.advance(10.0, engine.state.cache.snapshot())
    samples.advance(40.0, engine.state.cache.snapshot())
    engine.handle([AssignedPodSeen(make_pod("q", cpu="3", node="n0"))], 40.0)
    samples.advance(50.0, engine.state.cache.snapshot())
    engine.handle([NodeGone("n0")], 50.0)
    samples.advance(90.0, engine.state.cache.snapshot())
    assert samples.averages()["cpu"] == Share(round((0.25 * 30 + 1.0 * 10) / 40, 4), 0.0)
