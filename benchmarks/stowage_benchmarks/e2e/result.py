"""The result of one run: figures from a watch and from the kernel's accounting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from simcluster.harness.audit import ClusterState, overcommitted_nodes
from simcluster.harness.placements import Placement
from stowage_benchmarks.contender import Contender
from stowage_benchmarks.e2e.scenarios import Size


@dataclass(frozen=True, slots=True)
class Drain:
    """One run: which scheduler places which pods.

    Attributes:
        kubeconfig: Of an API server to use; None starts a simulated cluster.
    """

    contender: Contender
    workload: str
    size: Size
    scheduler_name: str = "stowage"
    timeout_s: float = 300.0
    kubeconfig: Path | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of the scheduler's process, from its start to the last binding."""

    cpu_s: float
    cpu_s_at_first_bind: float
    peak_memory_mib: float


class E2EResult(msgspec.Struct, frozen=True):
    """The figures of one run; times are seconds from the scheduler's start."""

    scheduler: str
    workload: str
    nodes: int
    running: int
    pods: int
    bound: int
    binds_per_s: float | None = None
    first_bind_s: float | None = None
    last_bind_s: float | None = None
    cpu_s: float | None = None
    cpu_ms_per_pod: float | None = None
    cpu_ms_per_pod_after_first_bind: float | None = None
    rss_mib: float | None = None
    max_on_node: int | None = None
    nodes_used: int | None = None
    problems: tuple[str, ...] = ()


def e2e_result(
    drain: Drain,
    placements: Sequence[Placement],
    state: ClusterState,
    started_at: float,
    cost: Cost,
) -> E2EResult:
    """Compute the figures of a run.

    Args:
        drain: The run.
        placements: Of the measured pods.
        state: The cluster at the end.
        started_at: When the scheduler was started, on the clock of the placements.
        cost: Of the scheduler process.
    """
    instants = sorted(each.bound_at for each in placements if each.bound_at is not None)
    result = E2EResult(
        scheduler=drain.contender.name,
        workload=drain.workload,
        nodes=drain.size.nodes,
        running=drain.size.running,
        pods=drain.size.pods,
        bound=len(instants),
        problems=tuple(_problems(drain, placements, state)),
    )
    if not instants:
        return result
    on_node = Counter(each.node_names[0] for each in placements if each.node_names)
    per_pod_ms = 1000 / len(instants)
    return msgspec.structs.replace(
        result,
        binds_per_s=_rate(instants),
        first_bind_s=round(instants[0] - started_at, 2),
        last_bind_s=round(instants[-1] - started_at, 2),
        cpu_s=round(cost.cpu_s, 2),
        cpu_ms_per_pod=round(cost.cpu_s * per_pod_ms, 3),
        cpu_ms_per_pod_after_first_bind=round(
            (cost.cpu_s - cost.cpu_s_at_first_bind) * per_pod_ms, 3
        ),
        rss_mib=round(cost.peak_memory_mib),
        max_on_node=max(on_node.values()),
        nodes_used=len(on_node),
    )


def _rate(instants: Sequence[float]) -> float | None:
    """Bindings per second from the first to the last; None if all came at one instant."""
    seconds = instants[-1] - instants[0]
    return round((len(instants) - 1) / seconds, 1) if seconds else None


def _problems(drain: Drain, placements: Sequence[Placement], state: ClusterState) -> Iterator[str]:
    num_bound = sum(each.bound_at is not None for each in placements)
    if num_bound < drain.size.pods:
        yield f"{num_bound} pods were bound of {drain.size.pods}"
    for placement in placements:
        if len(placement.node_names) > 1:
            name = placement.pod.metadata.namespaced_name
            yield f"pod {name} was seen on {' and '.join(placement.node_names)}"
    yield from overcommitted_nodes(state)
