"""Preemption: one node with many pods, all nodes full, and many disruption budgets."""

from __future__ import annotations

from collections.abc import Iterator

from stowage.api.decoding.decode import convert_object
from stowage.api.events import DisruptionBudgetSeen
from stowage.api.objects.policy import PodDisruptionBudget
from stowage_benchmarks.steps.shapes.shape import (
    Shapes,
    Size,
    node,
    nodes_seen,
    pod,
    requesting,
    running,
)
from stowage_benchmarks.steps.shell import MeasuredShell
from stowage_benchmarks.workloads import NAMESPACE

_BUDGETS = 100
_PODS_OF_ONE_NODE = 1_000
_PODS_A_NODE = 10


def _one_node(shell: MeasuredShell, size: Size) -> None:
    """One node has many pods, covered by budgets; the others are too small for the preemptor."""
    pods = size.of(_PODS_OF_ONE_NODE)
    amounts = {"cpu": f"{8 * pods}", "memory": "4000Gi", "pods": f"{pods + 10}"}
    shell.tell(nodes_seen([node(0, capacity=amounts, allocatable=amounts)]))
    shell.tell(nodes_seen(node(index) for index in range(1, size.nodes)))
    shell.tell(_budgets(size))
    for index in range(pods):
        labels = {"budget": str(index % size.of(_BUDGETS)), "own": str(index)}
        manifest = pod(f"low-{index}", labels, containers=requesting(cpu="8"), priority=index % 7)
        shell.tell([running(manifest, 0)])
    shell.list_pods([_preemptor("all", f"{8 * pods}"), _preemptor("half", f"{4 * pods}")])
    shell.schedule()


def _full_nodes(shell: MeasuredShell, size: Size) -> None:
    shell.tell(nodes_seen(node(index) for index in range(size.nodes)))
    shell.tell(_budgets(size))
    for index in range(size.nodes):
        for number in range(_PODS_A_NODE):
            labels = {"budget": str((index + number) % size.of(_BUDGETS))}
            manifest = pod(
                f"low-{index}-{number}",
                labels,
                containers=requesting(cpu="400m"),
                priority=number % 5,
            )
            shell.tell([running(manifest, index)])
    shell.list_pods([_preemptor("p1", "3"), _preemptor("p2", "2")])
    shell.schedule()


def _budgets(size: Size) -> Iterator[DisruptionBudgetSeen]:
    for index in range(size.of(_BUDGETS)):
        manifest = {
            "metadata": {"name": f"budget-{index}", "namespace": NAMESPACE},
            "spec": {"selector": {"matchLabels": {"budget": str(index)}}},
            "status": {"disruptionsAllowed": index % 3},
        }
        yield DisruptionBudgetSeen(convert_object(PodDisruptionBudget, manifest))


def _preemptor(name: str, cpu: str) -> dict[str, object]:
    return pod(name, {"app": name}, containers=requesting(cpu=cpu), priority=1_000)


PREEMPTION_SHAPES: Shapes = {
    "preemption of 1,000 pods of a node, 100 budgets": _one_node,
    "preemption on full nodes, 100 budgets": _full_nodes,
}
