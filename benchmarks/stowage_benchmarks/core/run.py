"""Measures the CPU cost of a pod inside the engine, without I/O.

Each pod is seen pending, scheduled, bound, and seen bound. The measured CPU time of the thread
covers all of it, so work that one step leaves for the next counts too.
"""

from __future__ import annotations

import gc
import random
import time
import tracemalloc
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from simcluster.kubelet.nodes import bench_node
from stowage.api.config.loading import DEFAULT_SCHEDULER_NAME, load_configuration
from stowage.api.decoding.decode import convert_object
from stowage.api.events import (
    AssignedPodSeen,
    BindSucceeded,
    Event,
    NamespaceSeen,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
)
from stowage.api.instructions import BindPod
from stowage.api.objects.meta import ObjectMeta
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.reflected_kinds import REFLECTED_KINDS, ReflectedKind
from stowage.cli.profiles import make_frameworks
from stowage.engine import Engine, make_engine
from stowage_benchmarks.core.frozen_heap import frozen_heap
from stowage_benchmarks.quantile import quantile
from stowage_benchmarks.workloads import NAMESPACE, objects_of, pending_pod, running_pod

SCHEDULER_NAME = DEFAULT_SCHEDULER_NAME
_KINDS: Mapping[str, ReflectedKind[Any]] = {kind.kind: kind for kind in REFLECTED_KINDS}
#: Pods scheduled before the clock counts: classes become known, caches warm.
WARM_UP_PODS = 30


class CoreResult(msgspec.Struct, frozen=True):
    """Cost of one workload at one size.

    Attributes:
        nodes: Nodes.
        pods: Pods measured.
        pod_median_us: Whole way of a pod through the engine, CPU microseconds.
        pod_p99_us: The same, 99th percentile.
        cycle_median_us: The part of `Engine.schedule`, microseconds.
        unscheduled: Pods that found no node; 0 in a valid run.
    """

    workload: str
    nodes: int
    pods: int
    pod_median_us: float
    pod_p99_us: float
    cycle_median_us: float
    unscheduled: int


class MemoryResult(msgspec.Struct, frozen=True):
    """Bytes that the engine keeps per node and per running pod, as tracemalloc counts them."""

    nodes: int
    bytes_per_node: float
    bytes_per_running_pod: float


def measure_core(
    workload: str, num_nodes: int, num_pods: int, running_a_node: int = 1
) -> CoreResult:
    """Schedule `num_pods` pods of `workload` on `num_nodes` nodes that run other pods already."""
    num_running = num_nodes * running_a_node
    engine = bench_engine()
    engine.handle(node_events(num_nodes), 0.0)
    engine.handle(_objects(workload, num_nodes, num_running, WARM_UP_PODS + num_pods), 0.0)
    engine.handle(running_pods(workload, num_nodes, num_running), 0.0)
    samples: list[tuple[float, float, bool]] = []
    with frozen_heap():
        for index in range(WARM_UP_PODS + num_pods):
            pod = bench_pod(pending_pod(workload, index, SCHEDULER_NAME))
            samples.append(one_pod(engine, pod, now=float(index)))
    return core_result(workload, num_nodes, samples[WARM_UP_PODS:])


def core_result(
    workload: str, num_nodes: int, samples: Sequence[tuple[float, float, bool]]
) -> CoreResult:
    """The result of pods that were measured one by one.

    Args:
        workload: Their workload.
        num_nodes: Number of nodes.
        samples: For each pod (µs in all, µs of its cycles, whether it ended as its workload wants).
    """
    whole = sorted(sample[0] for sample in samples)
    cycles = sorted(sample[1] for sample in samples)
    return CoreResult(
        workload=workload,
        nodes=num_nodes,
        pods=len(samples),
        pod_median_us=quantile(whole, 0.5),
        pod_p99_us=quantile(whole, 0.99),
        cycle_median_us=quantile(cycles, 0.5),
        unscheduled=sum(not sample[2] for sample in samples),
    )


def measure_memory(num_nodes: int, running_a_node: int = 1) -> MemoryResult:
    """Measure the memory of `num_nodes` nodes and their running pods."""
    num_running = num_nodes * running_a_node
    engine = bench_engine()
    gc.collect()
    tracemalloc.start()
    start = tracemalloc.get_traced_memory()[0]
    engine.handle(node_events(num_nodes), 0.0)
    gc.collect()
    with_nodes = tracemalloc.get_traced_memory()[0]
    engine.handle(running_pods("basic", num_nodes, num_running), 0.0)
    gc.collect()
    with_pods = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return MemoryResult(
        num_nodes, (with_nodes - start) / num_nodes, (with_pods - with_nodes) / num_running
    )


def bench_engine() -> Engine:
    """An engine with the default configuration and an empty cluster."""
    ties = random.Random(0)  # noqa: S311 - ties between equal nodes are no secret
    engine = make_engine(make_frameworks(load_configuration()), ties.randrange)
    engine.handle([NamespaceSeen(Namespace(ObjectMeta(name=NAMESPACE)))], 0.0)
    return engine


def node_events(num_nodes: int) -> Iterable[NodeSeen]:
    """The nodes of the benchmarks."""
    return (NodeSeen(convert_object(Node, bench_node(index))) for index in range(num_nodes))


def _objects(workload: str, num_nodes: int, num_running: int, num_pods: int) -> Iterable[Event]:
    for obj in objects_of(workload, num_nodes, num_running, num_pods):
        kind = _KINDS[obj["kind"]]
        yield kind.seen(convert_object(kind.type, obj))


def running_pods(workload: str, num_nodes: int, num_running: int) -> Iterable[AssignedPodSeen]:
    """The running pods of a workload, over the nodes of `node_events`."""
    pods = (running_pod(workload, index, num_nodes, SCHEDULER_NAME) for index in range(num_running))
    return (AssignedPodSeen(bench_pod(pod)) for pod in pods)


def bench_pod(manifest: dict[str, object]) -> Pod:
    """The pod as the API server would send it."""
    pod = convert_object(Pod, manifest)
    uid = f"uid-{pod.metadata.name}"
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=uid))


def one_pod(engine: Engine, pod: Pod, now: float) -> tuple[float, float, bool]:
    """Run one pod to its confirmed binding; (µs in all, µs of the cycle, whether it was bound)."""
    begin = time.thread_time_ns()
    engine.handle((PendingPodSeen(pod),), now)
    seen = time.thread_time_ns()
    instructions = engine.schedule(now, 1)
    scheduled = time.thread_time_ns()
    node_name = next((each.node_name for each in instructions if isinstance(each, BindPod)), "")
    if not node_name:
        return (scheduled - begin) / 1e3, (scheduled - seen) / 1e3, False
    meta = pod.metadata
    bound = msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name)
    )
    confirmation = (
        BindSucceeded(meta.uid, node_name),
        PendingPodGone(meta.namespace, meta.name, meta.uid),
        AssignedPodSeen(bound),
    )
    resumed = time.thread_time_ns()
    engine.handle(confirmation, now)
    whole = scheduled - begin + time.thread_time_ns() - resumed
    return whole / 1e3, (scheduled - seen) / 1e3, True
