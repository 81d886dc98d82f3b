"""Many waiting pods: the first order, and events that move all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stowage_benchmarks.steps.shapes.shape import (
    Shapes,
    Size,
    basic_cluster,
    node,
    nodes_seen,
    pending,
    pod,
    requesting,
)
from stowage_benchmarks.steps.shell import MeasuredShell
from stowage_benchmarks.workloads import Json

_STORM = 100_000
_TEMPLATES = 50
_FIVE_MINUTES_S = 331.0
"""Long waits end at half minutes."""
_BACKOFF_S = 11.0
_TURNS = 100


def _first_order(number: int) -> Callable[[MeasuredShell, Size], None]:
    def shape(shell: MeasuredShell, size: Size) -> None:
        basic_cluster(shell, size)
        shell.list_pods(pod(f"pod-{index}", priority=index % 3) for index in range(size.of(number)))
        shell.schedule_for(_TURNS)

    return shape


def _moved_by_node(shell: MeasuredShell, size: Size) -> None:
    """The change of a node moves all pods to the backoff queue, and time to the active one."""
    _all_unschedulable(shell, size)
    shell.receive(nodes_seen([_larger_node()]))
    shell.wait(_BACKOFF_S)
    shell.schedule_for(_TURNS)


def _moved_after_backoff(shell: MeasuredShell, size: Size) -> None:
    """The backoff of all pods is over when a node changes."""
    _all_unschedulable(shell, size)
    shell.wait(_BACKOFF_S)
    shell.receive(nodes_seen([_larger_node()]))
    shell.schedule_for(_TURNS)


def _flushed(shell: MeasuredShell, size: Size) -> None:
    """All pods have been unschedulable for five minutes."""
    _all_unschedulable(shell, size)
    shell.wait(_FIVE_MINUTES_S)
    shell.schedule_for(_TURNS)


def _all_unschedulable(shell: MeasuredShell, size: Size) -> None:
    shell.tell(nodes_seen(node(index) for index in range(size.nodes)))
    number = size.of(_STORM)
    shell.tell(map(pending, _large_pods(number)))
    shell.engine.schedule(shell.now(), number)


def _large_pods(number: int) -> Iterator[Json]:
    for index in range(number):
        labels = {"template": str(index % _TEMPLATES)}
        yield pod(f"pod-{index}", labels, containers=requesting(cpu="100"))


def _larger_node() -> Json:
    amounts = {"cpu": "200", "memory": "32Gi", "pods": "110"}
    return node(0, capacity=amounts, allocatable=amounts)


QUEUE_SHAPES: Shapes = {
    "first order of 100,000 pending pods": _first_order(100_000),
    "first order of 500,000 pending pods": _first_order(500_000),
    "a node's change moves 100,000 pods to backoff": _moved_by_node,
    "a node's change makes 100,000 pods active": _moved_after_backoff,
    "100,000 pods are flushed after five minutes": _flushed,
}
