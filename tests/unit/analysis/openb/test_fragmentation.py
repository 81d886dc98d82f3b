"""The fragmentation of nodes, kept up to date, equals that of the plain twin."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowage.analysis.simulation.openb.fragmentation import Fragmentation, Overcommitted
from stowage.analysis.simulation.openb.trace import OpenbNode, OpenbPod
from stowage.analysis.simulation.openb.typical_pods import typical_pods
from tests.openb.synthetic import synthetic_trace
from tests.openb.twin import TwinNode
from tests.openb.twin import fragmentation as plain

NODE = OpenbNode("n", 10_000, 1, 2, "T4")


@given(st.integers(1, 6), st.booleans())
def test_amounts_after_placements_equal_those_of_the_twin(seed: int, with_spec: bool) -> None:
    trace = synthetic_trace(seed, with_spec=with_spec)
    typical = typical_pods(trace)
    kept = Fragmentation(trace.nodes, typical)
    rand = random.Random(seed)
    twins = [TwinNode(each, 0, each.cpu_milli, 10**9, [1000] * each.gpus) for each in trace.nodes]
    for pod in trace.pods:
        fitting = [twin for twin in twins if twin.fits(pod)]
        if fitting:
            twin = rand.choice(fitting)
            gpus = twin.least_free(pod)
            twin.cpu -= pod.cpu_milli
            for gpu in gpus:
                twin.free[gpu] -= pod.gpu_milli
            kept.place(pod, twin.node.name, gpus)
    amounts = [plain(twin.cpu, twin.free, twin.node.model, typical) for twin in twins]
    np.testing.assert_allclose(kept.amounts, amounts, atol=1e-9)
    assert kept.idle.tolist() == [twin.idle for twin in twins]


@pytest.mark.parametrize(
    ("pod", "gpus"),
    [
        (OpenbPod("p", 1, 1, 1, 500), []),
        (OpenbPod("p", 1, 1, 2, 1000), [1, 1]),
        (OpenbPod("p", 1, 1, 1, 500), [2]),
        (OpenbPod("p", 1, 1, 1, 500), [-1]),
        (OpenbPod("p", 1, 1, 1, 700), [0]),
        (OpenbPod("p", 20_000, 1, 0, 0), []),
    ],
    ids=["no GPU", "one twice", "unknown", "negative", "too full", "no CPU"],
)
def test_a_pod_is_refused_where_it_does_not_fit(pod: OpenbPod, gpus: list[int]) -> None:
    kept = Fragmentation((NODE,), ())
    kept.place(OpenbPod("q", 1, 1, 1, 400), "n", [0])
    with pytest.raises(Overcommitted, match=r"^p "):
        kept.place(pod, "n", gpus)
    assert kept.idle.tolist() == [1600]
