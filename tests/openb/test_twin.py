"""The engine with the plugins of examples/gpushare places pods as the plain twin does."""

from __future__ import annotations

import pytest

from stowage.analysis.simulation.openb.arrivals import draw_arrivals
from stowage.analysis.simulation.openb.experiment import OpenbExperiment
from stowage.analysis.simulation.openb.trace import OpenbPod
from stowage.analysis.simulation.openb.typical_pods import typical_pods
from stowage.analysis.simulation.result import ExperimentResult
from tests.openb.installed import Published
from tests.openb.published import DETERMINISTIC
from tests.openb.synthetic import synthetic_trace
from tests.openb.twin import twin_placements

Placements = dict[str, tuple[str, tuple[int, ...]]]


def _run(seed: int, policy: str, *, with_spec: bool = False) -> tuple[ExperimentResult, Placements]:
    """The result, and pod -> node and GPUs."""
    placements: Placements = {}

    def note(pod: OpenbPod, node: str, gpus: tuple[int, ...]) -> None:
        placements[pod.name] = (node, gpus)

    trace = synthetic_trace(seed, with_spec=with_spec)
    return OpenbExperiment(trace, Published(policy), seed).run(note), placements


@pytest.mark.parametrize("with_spec", [False, True], ids=["any model", "some models"])
@pytest.mark.parametrize("policy", DETERMINISTIC)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_pod_gets_the_node_and_the_gpus_of_the_twin(
    policy: str, seed: int, with_spec: bool
) -> None:
    trace = synthetic_trace(seed, with_spec=with_spec)
    arrivals = draw_arrivals(trace, seed)
    expected = twin_placements(trace.nodes, typical_pods(trace), arrivals, policy)
    result, placements = _run(seed, policy, with_spec=with_spec)
    for pod, found in zip(arrivals.pods, expected, strict=True):
        wanted = None if found is None else (found[0], tuple(found[1]))
        assert placements.get(pod.name) == wanted, pod
    assert result.metrics["bound"] == len(placements)
    assert result.metrics["failed"] == len(arrivals.pods) - len(placements) > 0


def test_random_uses_all_nodes_and_other_gpus_than_the_first() -> None:
    result, placements = _run(3, "Random")
    trace = synthetic_trace(3)
    assert {node for node, _ in placements.values()} == {
        node.name for node in trace.nodes if node.gpus
    } | {node for node, gpus in placements.values() if not gpus}
    shared = [gpus[0] for _, gpus in placements.values() if len(gpus) == 1]
    assert max(shared) > 3
    assert sum(result.failed.values()) == result.metrics["failed"] > 0


def test_the_same_seed_gives_the_same_result() -> None:
    first, _ = _run(4, "Random")
    assert first == _run(4, "Random")[0]
    assert first.series != _run(5, "Random")[0].series
