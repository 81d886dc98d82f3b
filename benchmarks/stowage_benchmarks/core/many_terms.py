"""Measures pods with thousands of affinity terms inside the engine, without I/O.

Each pod meets an engine that knows nothing about its terms, nor about pods with many terms.
"""

from __future__ import annotations

from collections.abc import Callable

from simcluster.kubelet.nodes import HOSTNAME, ZONE
from stowage_benchmarks.core.frozen_heap import frozen_heap
from stowage_benchmarks.core.run import (
    SCHEDULER_NAME,
    CoreResult,
    bench_engine,
    bench_pod,
    core_result,
    node_events,
    one_pod,
    running_pods,
)
from stowage_benchmarks.workloads import Json, pending_pod

NUM_TERMS = 8_000


def measure_many_terms(
    num_nodes: int, num_terms: int = NUM_TERMS, pods_of_a_kind: int = 3
) -> list[CoreResult]:
    """The cost of pods with `num_terms` terms, one result for each kind of terms."""
    return [
        core_result(
            f"{kind}, {num_terms} terms",
            num_nodes,
            [_measure(affinity, num_nodes, num_terms) for _ in range(pods_of_a_kind)],
        )
        for kind, affinity in KINDS_OF_TERMS.items()
    ]


def _measure(
    affinity: Callable[[int, int], Json], num_nodes: int, num_terms: int
) -> tuple[float, float, bool]:
    """Run one pod through an engine that has seen no other pod with many terms."""
    engine = bench_engine()
    engine.handle(node_events(num_nodes), 0.0)
    engine.handle(running_pods("basic", num_nodes, num_nodes), 0.0)
    # The columns of labels are built for the first pod that needs them, and stay.
    one_pod(engine, bench_pod(_pod(0, affinity(0, 1))), now=0.0)
    pod = bench_pod(_pod(1, affinity(1, num_terms)))
    with frozen_heap():
        return one_pod(engine, pod, now=1.0)


def _pod(index: int, affinity: Json) -> Json:
    pod = pending_pod("basic", index, SCHEDULER_NAME)
    pod["spec"]["affinity"] = affinity
    return pod


def _node_affinity(index: int, num_terms: int) -> Json:
    """Terms with two requirements."""
    terms = [
        {
            "matchExpressions": [
                {"key": ZONE, "operator": "NotIn", "values": [f"zone-{index}-{number}"]},
                {"key": HOSTNAME, "operator": "NotIn", "values": [f"node-{number:05d}"]},
            ]
        }
        for number in range(num_terms)
    ]
    selector = {"nodeSelectorTerms": terms}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def _affinity(index: int, num_terms: int) -> Json:
    """Terms that all match the same pods."""
    terms = [_term("NotIn", f"b-{index}-{number}") for number in range(num_terms)]
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _anti_affinity(index: int, num_terms: int) -> Json:
    """Terms that match no pod."""
    terms = [_term("In", f"b-{index}-{number}") for number in range(num_terms)]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _preferred_affinity(index: int, num_terms: int) -> Json:
    """Terms that all match the same pods."""
    terms = [
        {"weight": 1 + number % 100, "podAffinityTerm": _term("NotIn", f"b-{index}-{number}")}
        for number in range(num_terms)
    ]
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def _term(operator: str, value: str) -> Json:
    expression = {"key": "app", "operator": operator, "values": [value]}
    return {"topologyKey": HOSTNAME, "labelSelector": {"matchExpressions": [expression]}}


KINDS_OF_TERMS: dict[str, Callable[[int, int], Json]] = {
    "node affinity": _node_affinity,
    "affinity": _affinity,
    "anti-affinity": _anti_affinity,
    "preferred affinity": _preferred_affinity,
}
