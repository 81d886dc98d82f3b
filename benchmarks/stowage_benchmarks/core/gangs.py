"""Measures the CPU cost of the members of gangs inside the engine, without I/O.

A gang is seen with all its pods pending, scheduled in one cycle, bound, and seen bound. The cost of
a pod is that of its gang divided by the number of its pods.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from stowage.api.decoding.decode import convert_object
from stowage.api.events import (
    AssignedPodSeen,
    BindSucceeded,
    Event,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
    PodGroupSeen,
)
from stowage.api.instructions import BindPod
from stowage.api.objects.pod import Pod
from stowage.api.objects.pod_groups import PodGroup
from stowage.engine import Engine
from stowage_benchmarks.core.frozen_heap import frozen_heap
from stowage_benchmarks.core.run import (
    SCHEDULER_NAME,
    CoreResult,
    bench_engine,
    bench_pod,
    node_events,
)
from stowage_benchmarks.quantile import quantile
from stowage_benchmarks.workloads import GANG_SIZES, NAMESPACE, TOPOLOGY_GANGS, Json, pending_pod

_WARM_UP_GANGS = 1
_RACK = "example.com/rack"
_NODES_PER_RACK = 20


def measure_gangs(workload: str) -> Callable[[int, int], CoreResult]:
    """The measurement of a workload of gangs, by numbers of nodes and of pods."""
    return lambda num_nodes, num_pods: _measure(workload, num_nodes, num_pods)


def _measure(workload: str, num_nodes: int, num_pods: int) -> CoreResult:
    """Schedule at least `num_pods` pods in gangs on `num_nodes` empty nodes, 20 to a rack."""
    size = GANG_SIZES[workload]
    num_gangs = -(-num_pods // size)
    engine = bench_engine()
    engine.handle(_in_racks(node_events(num_nodes)), 0.0)
    key = _RACK if workload == TOPOLOGY_GANGS else ""
    numbers = range(_WARM_UP_GANGS + num_gangs)
    with frozen_heap():
        samples = [_one_gang(engine, index, size, key) for index in numbers]
    measured = samples[_WARM_UP_GANGS:]
    whole = sorted(sample[0] for sample in measured)
    cycles = sorted(sample[1] for sample in measured)
    return CoreResult(
        workload=workload,
        nodes=num_nodes,
        pods=num_gangs * size,
        pod_median_us=quantile(whole, 0.5),
        pod_p99_us=quantile(whole, 0.99),
        cycle_median_us=quantile(cycles, 0.5),
        unscheduled=sum(sample[2] for sample in measured),
    )


def _in_racks(nodes: Iterable[NodeSeen]) -> Iterator[NodeSeen]:
    """The nodes, each with the label of its rack."""
    for index, each in enumerate(nodes):
        meta = each.node.metadata
        labels = {**meta.labels, _RACK: f"rack-{index // _NODES_PER_RACK:05d}"}
        yield NodeSeen(replace(each.node, metadata=replace(meta, labels=labels)))


def _one_gang(engine: Engine, index: int, size: int, topology_key: str) -> tuple[float, float, int]:
    """Run one gang to its confirmed bindings; (µs a pod, µs a pod of the cycle, pods not bound)."""
    now = float(index)
    group = f"gang-{index:05d}"
    pods = [bench_pod(_member(group, index * size + number)) for number in range(size)]
    arrival: list[Event] = [
        PodGroupSeen(_gang(group, size, topology_key)),
        *map(PendingPodSeen, pods),
    ]
    begin = time.thread_time_ns()
    engine.handle(arrival, now)
    decided = time.thread_time_ns()
    answer = engine.schedule(now, 1)
    end = time.thread_time_ns()
    spent = end - begin
    by_uid = {pod.metadata.uid: pod for pod in pods}
    binds = [each for each in answer if isinstance(each, BindPod)]
    confirmations: list[Event] = []
    for bind in binds:
        confirmations.append(BindSucceeded(bind.pod.uid, bind.node_name))
        confirmations.append(PendingPodGone(NAMESPACE, bind.pod.name, bind.pod.uid))
        bound = _on_node(by_uid[bind.pod.uid], bind.node_name)
        confirmations.append(AssignedPodSeen(bound))
    begin = time.thread_time_ns()
    engine.handle(confirmations, now)
    spent += time.thread_time_ns() - begin
    return spent / 1000 / size, (end - decided) / 1000 / size, size - len(binds)


def _gang(name: str, size: int, topology_key: str) -> PodGroup:
    constraints = {"topology": [{"key": topology_key}]} if topology_key else {}
    content = {
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": size}},
            "schedulingConstraints": constraints,
        },
    }
    return convert_object(PodGroup, content)


def _member(group: str, index: int) -> Json:
    pod = pending_pod("basic", 0, SCHEDULER_NAME)
    pod["metadata"]["name"] = f"pod-{index:06d}"
    pod["spec"]["schedulingGroup"] = {"podGroupName": group}
    return pod


def _on_node(pod: Pod, node_name: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node_name))
