"""Random numbers as Go's, and the arrivals that are drawn from them."""

from __future__ import annotations

from typing import cast

import pytest

from stowage.analysis.simulation.openb.arrivals import draw_arrivals
from stowage.analysis.simulation.openb.go_random import GoRandom
from stowage.analysis.simulation.openb.trace import OpenbTrace
from stowage.analysis.simulation.openb.typical_pods import typical_pods
from tests.openb.published import folder, published_trace
from tests.openb.synthetic import synthetic_trace


def test_the_numbers_of_a_seed_are_those_of_go() -> None:
    # rand.Seed(1) and rand.Seed(42) of Go's math/rand, the first values of Int63.
    assert [GoRandom(1).next()] == [5577006791947779410]
    random = GoRandom(42)
    assert [random.next(), random.next()] == [3440579354231278675, 608747136543856411]


def test_a_permutation_and_a_shuffle_hold_every_item_once() -> None:
    random = GoRandom(7)
    assert sorted(random.permutation(100)) == list(range(100))
    items = list(range(100))
    random.shuffle(cast("list[object]", items))
    assert items != sorted(items) == list(range(100))


@pytest.mark.parametrize("below", [1, 6, 64])
def test_a_draw_is_below_its_bound_and_reaches_it(below: int) -> None:
    random = GoRandom(3)
    assert {random.draw(below) for _ in range(600)} == set(range(below))


def _requested(trace: OpenbTrace, seed: int) -> float:
    arrived = sum(pod.total_milli for pod in draw_arrivals(trace, seed).pods)
    return arrived / trace.num_gpus / 10


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pods_are_repeated_until_they_request_130_percent(seed: int) -> None:
    trace = synthetic_trace(seed)
    few = OpenbTrace(trace.name, trace.nodes, trace.pods[:40])
    names = [pod.name for pod in draw_arrivals(few, seed).pods]
    assert len(set(names)) == len(names) > 40
    assert sorted(names[:40]) == [pod.name for pod in few.pods]
    # The last pod that fits may have eight GPUs, and the next one may not be added.
    assert abs(_requested(few, seed) - 130) <= 800 / trace.num_gpus


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pods_are_dropped_if_they_request_more(seed: int) -> None:
    trace = synthetic_trace(seed)
    few = OpenbTrace(trace.name, trace.nodes[-1:], trace.pods)
    arrived = draw_arrivals(few, seed).pods
    assert {pod.name for pod in arrived} < {pod.name for pod in trace.pods}
    assert 30 <= _requested(few, seed) <= 130


def test_each_node_has_one_rank() -> None:
    trace = synthetic_trace(1)
    ranks = draw_arrivals(trace, 5).ranks
    assert sorted(ranks.values()) == list(range(len(trace.nodes)))
    assert ranks != draw_arrivals(trace, 6).ranks


def test_typical_pods_are_the_most_frequent_kinds() -> None:
    trace = synthetic_trace(1, with_spec=True)
    typical = typical_pods(trace)
    assert sum(pod.weight for pod in typical) == pytest.approx(1)
    weights = [pod.weight for pod in typical]
    assert weights == sorted(weights, reverse=True)
    kinds = {(pod.cpu_milli, pod.gpu_milli, pod.gpus, pod.spec) for pod in typical}
    taken = [
        pod for pod in trace.pods if (pod.cpu_milli, pod.gpu_milli, pod.gpus, pod.spec) in kinds
    ]
    assert 0.95 <= len(taken) / len(trace.pods) < 1


@pytest.mark.skipif(folder() is None, reason="the data are not at hand")
def test_the_arrivals_of_the_published_trace_are_those_published() -> None:
    data = folder()
    assert data is not None
    trace = published_trace(data, "default")
    arrivals = draw_arrivals(trace, 42)
    assert len(arrivals.pods) == 10_866
    first = ["0255", "1685", "6784", "4463", "0602", "1564"]
    assert [pod.name[-4:] for pod in arrivals.pods[:6]] == first
    assert list(arrivals.ranks.values())[:4] == [601, 815, 450, 13]
    assert len(typical_pods(trace)) == 35
