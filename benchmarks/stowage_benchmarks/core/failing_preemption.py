"""Measures attempts that fail in vain: no eviction helps, and nothing has changed since the last.

All nodes are full: of a pod of higher priority and one of lower priority, which is too small. The
pods that arrive have labels of their own, like those of a StatefulSet, so each is of another class.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from stowage.api.events import AssignedPodSeen, PendingPodSeen
from stowage.api.instructions import AttemptResult
from stowage.api.objects.pod import Pod
from stowage.engine import Engine
from stowage_benchmarks.core.frozen_heap import frozen_heap
from stowage_benchmarks.core.run import (
    SCHEDULER_NAME,
    WARM_UP_PODS,
    CoreResult,
    bench_engine,
    bench_pod,
    core_result,
    node_events,
)
from stowage_benchmarks.workloads import FAILING_PREEMPTION, pending_pod

_LARGE, _SMALL, _WANTED = "3500m", "400m", "600m"
_HIGHER, _OWN, _LOWER = 2000, 1000, 0


def measure_failing_preemption(num_nodes: int, num_pods: int) -> CoreResult:
    """Let `num_pods` pods fail to preempt others on `num_nodes` full nodes."""
    engine = bench_engine()
    engine.handle(node_events(num_nodes), 0.0)
    engine.handle(_filling_pods(num_nodes), 0.0)
    with frozen_heap():
        samples = [_one_pod(engine, index) for index in range(WARM_UP_PODS + num_pods)]
    return core_result(FAILING_PREEMPTION, num_nodes, samples[WARM_UP_PODS:])


def _one_pod(engine: Engine, index: int) -> tuple[float, float, bool]:
    """One attempt; (µs in all, µs of the cycle, whether it failed without a nomination)."""
    pod = _pod(f"own-{index:06d}", index, _WANTED, _OWN)
    pod.metadata.labels["pod-index"] = str(index)
    begin = time.thread_time_ns()
    engine.handle((PendingPodSeen(pod),), float(index))
    seen = time.thread_time_ns()
    instructions = engine.schedule(float(index), 1)
    end = time.thread_time_ns()
    results = [each for each in instructions if isinstance(each, AttemptResult)]
    failed = [each for each in results if each.result == "unschedulable"]
    is_expected = len(failed) == 1 and not failed[0].nominated_node_name
    return (end - begin) / 1e3, (end - seen) / 1e3, is_expected


def _filling_pods(num_nodes: int) -> Iterable[AssignedPodSeen]:
    for index in range(num_nodes):
        for name, cpu, priority in (("high", _LARGE, _HIGHER), ("low", _SMALL, _LOWER)):
            pod = _pod(f"{name}-{index:06d}", index, cpu, priority, nodeName=f"node-{index:05d}")
            yield AssignedPodSeen(pod)


def _pod(name: str, index: int, cpu: str, priority: int, **spec: object) -> Pod:
    manifest = pending_pod("basic", index, SCHEDULER_NAME)
    manifest["metadata"]["name"] = name
    amounts = {"cpu": cpu, "memory": "500Mi"}
    manifest["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    manifest["spec"].update(spec, priority=priority)
    return bench_pod(manifest)
