"""Pods with thousands of affinity terms, and with many spread constraints."""

from __future__ import annotations

from collections.abc import Callable

from stowage_benchmarks.core.many_terms import KINDS_OF_TERMS
from stowage_benchmarks.steps.shapes.shape import (
    Shapes,
    Size,
    basic_cluster,
    node,
    nodes_seen,
    pod,
    running,
)
from stowage_benchmarks.steps.shell import MeasuredShell
from stowage_benchmarks.workloads import Json

_TERMS = 8_000
_PODS = 10
_CONSTRAINTS = 200


def _one_pod(affinity: Callable[[int, int], Json]) -> Callable[[MeasuredShell, Size], None]:
    def shape(shell: MeasuredShell, size: Size) -> None:
        basic_cluster(shell, size)
        shell.list_pods([pod("p", affinity=affinity(1, size.of(_TERMS)))])
        shell.schedule()

    return shape


def _ten_pods(shell: MeasuredShell, size: Size) -> None:
    basic_cluster(shell, size)
    kinds = list(KINDS_OF_TERMS.values())
    shell.list_pods(
        pod(f"p{index}", affinity=kinds[index % len(kinds)](index, size.of(_TERMS)))
        for index in range(_PODS)
    )
    shell.schedule()


def _spread(shell: MeasuredShell, size: Size) -> None:
    """Each constraint has a topology key of its own, and on each node a domain of its own."""
    keys = [f"rack-{number}" for number in range(size.of(_CONSTRAINTS))]
    shell.tell(
        nodes_seen(node(index, dict.fromkeys(keys, f"d-{index}")) for index in range(size.nodes))
    )
    shell.tell(running(pod(f"init-{index}"), index) for index in range(size.nodes))
    shell.list_pods(
        pod(f"p-{when}", topologySpreadConstraints=[_constraint(key, when) for key in keys])
        for when in ("DoNotSchedule", "ScheduleAnyway")
    )
    shell.schedule()


def _constraint(key: str, when: str) -> Json:
    return {
        "maxSkew": 5,
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "a0"}},
    }


TERMS: Shapes = {
    **{f"{kind}, 8,000 terms": _one_pod(affinity) for kind, affinity in KINDS_OF_TERMS.items()},
    "ten pods, 8,000 terms each": _ten_pods,
    "200 spread constraints, a key each": _spread,
}
