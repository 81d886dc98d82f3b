"""The workloads of `stowage bench e2e`: their objects and their churn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from simcluster.kubelet.nodes import bench_node
from stowage_benchmarks.devices import (
    CLAIMS_PER_NODE,
    asking_for_device,
    claim_template,
    device_class,
    resource_slice,
)
from stowage_benchmarks.workloads import (
    CLAIMS,
    GANG_SIZES,
    NAMESPACE,
    WORKLOADS,
    Json,
    objects_of,
    pending_pod,
    running_pod,
)

#: Name prefix of the measured pods.
MEASURED_PREFIX = "pod-"
#: Name prefix of pod groups.
GANG_PREFIX = "gang-"
GANGS = "gangs"
_GANG_SIZE = GANG_SIZES[GANGS]
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
        max_per_node: How many of the pods fit on a node; None if the nodes have room for all.
        has_claims: Whether the pods wait for the claim controller to make claims for them.
        gang_size: Pods of a gang; the number of pods is a multiple of it.
        cluster_flags: Flags of ``stowage cluster``.
    """

    setting: Setting
    measured: MeasuredPod
    has_churn: bool = False
    max_per_node: int | None = None
    has_claims: bool = False
    gang_size: int = 1
    cluster_flags: tuple[str, ...] = ()

    def fitting(self, size: Size) -> Size:
        """The size, limited to the pods that fit, and to whole gangs."""
        if self.max_per_node is not None:
            return replace(size, pods=min(size.pods, size.nodes * self.max_per_node))
        return replace(size, pods=-(-size.pods // self.gang_size) * self.gang_size)


def scenario_nodes(size: Size) -> Iterator[Json]:
    """The nodes of every scenario."""
    return (bench_node(index) for index in range(size.nodes))


def _constrained(workload: str) -> Scenario:
    """One of the workloads of `stowage bench core`."""

    def setting(size: Size, scheduler_name: str) -> Iterator[Json]:
        yield from objects_of(workload, size.nodes, size.running, size.pods)
        for index in range(size.running):
            yield running_pod(workload, index, size.nodes, scheduler_name)

    return Scenario(
        setting,
        lambda index, name: pending_pod(workload, index, name),
        max_per_node=1 if workload == "anti-affinity" else None,
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


def _claims_setting(size: Size, scheduler_name: str) -> Iterator[Json]:
    """Devices on every node, their class, and the template of the claims."""
    yield device_class()
    yield claim_template(NAMESPACE)
    for node in scenario_nodes(size):
        yield resource_slice(node["metadata"]["name"])
    yield from WORKLOAD_SCENARIOS["basic"].setting(size, scheduler_name)


def _unschedulable_setting(size: Size, scheduler_name: str) -> Iterator[Json]:
    """Pods that fit nowhere; they are tried before the measured ones."""
    yield from WORKLOAD_SCENARIOS["basic"].setting(size, scheduler_name)
    for index in range(NUM_IN_THE_WAY):
        pod = pending_pod("basic", index, scheduler_name)
        pod["metadata"]["name"] = f"huge-{index:06d}"
        _ask_for(pod, "100")
        yield pod


def _gang_setting(size: Size, scheduler_name: str) -> Iterator[Json]:
    """The groups of all gangs, and the running pods of the basic workload."""
    yield from WORKLOAD_SCENARIOS["basic"].setting(size, scheduler_name)
    for index in range(0, size.pods, _GANG_SIZE):
        yield {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": _gang_of(index), "namespace": NAMESPACE},
            "spec": {"schedulingPolicy": {"gang": {"minCount": _GANG_SIZE}}},
        }


def _gang_of(index: int) -> str:
    return f"{GANG_PREFIX}{index // _GANG_SIZE:06d}"


def _member(index: int, scheduler_name: str) -> Json:
    pod = pending_pod("basic", index, scheduler_name)
    pod["spec"]["schedulingGroup"] = {"podGroupName": _gang_of(index)}
    return pod


def _ask_for(pod: Json, cpu: str) -> None:
    resources = {"cpu": cpu, "memory": "500Mi"}
    pod["spec"]["containers"][0]["resources"] = {"requests": resources, "limits": resources}


WORKLOAD_SCENARIOS: dict[str, Scenario] = {name: _constrained(name) for name in WORKLOADS}

SCENARIOS: dict[str, Scenario] = {
    **WORKLOAD_SCENARIOS,
    "preemption": Scenario(_preemption_setting, _preemptor),
    CLAIMS: Scenario(
        _claims_setting,
        lambda index, name: asking_for_device(pending_pod(CLAIMS, index, name)),
        max_per_node=CLAIMS_PER_NODE,
        has_claims=True,
    ),
    "unschedulable": Scenario(_unschedulable_setting, WORKLOAD_SCENARIOS["basic"].measured),
    GANGS: Scenario(
        _gang_setting,
        _member,
        gang_size=_GANG_SIZE,
        cluster_flags=(
            "--feature-gates=GenericWorkload=true",
            "--runtime-config=scheduling.k8s.io/v1alpha2=true",
        ),
    ),
    "churn": Scenario(
        WORKLOAD_SCENARIOS["mixed"].setting, WORKLOAD_SCENARIOS["mixed"].measured, has_churn=True
    ),
}

__all__ = [
    "GANG_PREFIX",
    "HIGH_PRIORITY",
    "MEASURED_PREFIX",
    "NAMESPACE",
    "NUM_IN_THE_WAY",
    "SCENARIOS",
    "Scenario",
    "Size",
    "scenario_nodes",
]
