"""The workloads of `stowage bench e2e`: their objects and their churn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from simcluster.kubelet.nodes import bench_node
from stowage_benchmarks.workloads import (
    NAMESPACE,
    WORKLOADS,
    Json,
    pending_pod,
    running_pod,
    storage_of,
)

#: Name prefix of the measured pods.
MEASURED_PREFIX = "pod-"
HIGH_PRIORITY = "bench-high"
NUM_IN_THE_WAY = 20_000
_LOW_PRIORITY_PODS_PER_NODE = 4


@dataclass(frozen=True, slots=True)
class Size:
    """How large a run is: nodes, pods that run from the start, pods to bind."""

    nodes: int
    running: int
    pods: int


#: (size, scheduler name) -> objects that exist before anything is measured.
Setting: TypeAlias = Callable[[Size, str], Iterator[Json]]
#: (pod number, scheduler name) -> a pod to bind.
MeasuredPod: TypeAlias = Callable[[int, str], Json]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One workload of the benchmark.

    Attributes:
        setting: Objects that exist besides the nodes.
        measured: The pods to bind; their names begin with `MEASURED_PREFIX`.
        has_churn: Whether nodes and other pods are created and deleted meanwhile.
        is_one_per_node: Whether at most one of the pods fits on a node.
    """

    setting: Setting
    measured: MeasuredPod
    has_churn: bool = False
    is_one_per_node: bool = False

    def fitting(self, size: Size) -> Size:
        """The size, limited to the pods that fit."""
        return replace(size, pods=min(size.pods, size.nodes)) if self.is_one_per_node else size


def scenario_nodes(size: Size) -> Iterator[Json]:
    """The nodes of every scenario."""
    return (bench_node(index) for index in range(size.nodes))


def _constrained(workload: str) -> Scenario:
    """One of the workloads of `stowage bench core`."""

    def setting(size: Size, scheduler_name: str) -> Iterator[Json]:
        yield from storage_of(workload, size.nodes, size.running, size.pods)
        for index in range(size.running):
            yield running_pod(workload, index, size.nodes, scheduler_name)

    return Scenario(
        setting,
        lambda index, name: pending_pod(workload, index, name),
        is_one_per_node=workload == "anti-affinity",
    )


def _preemption_setting(size: Size, scheduler_name: str) -> Iterator[Json]:
    """Fill every node with pods that can be preempted, without a grace period."""
    yield {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": HIGH_PRIORITY},
        "value": 1000,
    }
    for index in range(size.nodes * _LOW_PRIORITY_PODS_PER_NODE):
        pod = running_pod("basic", index, size.nodes, scheduler_name)
        pod["spec"]["terminationGracePeriodSeconds"] = 0
        _ask_for(pod, "900m")
        yield pod


def _preemptor(index: int, scheduler_name: str) -> Json:
    """A pod that fits once at least one low-priority pod is gone."""
    pod = pending_pod("basic", index, scheduler_name)
    pod["spec"]["priorityClassName"] = HIGH_PRIORITY
    _ask_for(pod, "1")
    return pod


def _unschedulable_setting(size: Size, scheduler_name: str) -> Iterator[Json]:
    """Pods that fit nowhere; they are tried before the measured ones."""
    yield from WORKLOAD_SCENARIOS["basic"].setting(size, scheduler_name)
    for index in range(NUM_IN_THE_WAY):
        pod = pending_pod("basic", index, scheduler_name)
        pod["metadata"]["name"] = f"huge-{index:06d}"
        _ask_for(pod, "100")
        yield pod


def _ask_for(pod: Json, cpu: str) -> None:
    resources = {"cpu": cpu, "memory": "500Mi"}
    pod["spec"]["containers"][0]["resources"] = {"requests": resources, "limits": resources}


WORKLOAD_SCENARIOS: dict[str, Scenario] = {name: _constrained(name) for name in WORKLOADS}

SCENARIOS: dict[str, Scenario] = {
    **WORKLOAD_SCENARIOS,
    "preemption": Scenario(_preemption_setting, _preemptor),
    "unschedulable": Scenario(_unschedulable_setting, WORKLOAD_SCENARIOS["basic"].measured),
    "churn": Scenario(
        WORKLOAD_SCENARIOS["mixed"].setting, WORKLOAD_SCENARIOS["mixed"].measured, has_churn=True
    ),
}

__all__ = [
    "HIGH_PRIORITY",
    "MEASURED_PREFIX",
    "NAMESPACE",
    "NUM_IN_THE_WAY",
    "SCENARIOS",
    "Scenario",
    "Size",
    "scenario_nodes",
]
