"""Measures the CPU cost of a preemption inside the engine, without I/O.

All nodes are full of pods without priority. Pods with priority arrive one after the other. Each is
found unschedulable, nominated to a node whose victims are evicted (the benchmark answers for the
API server at once), then scheduled, bound and confirmed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import msgspec

from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    BindSucceeded,
    Event,
    EvictionFinished,
    PendingPodGone,
    PendingPodSeen,
)
from stowage.api.instructions import BindPod, EvictPod, Instruction, PatchPodStatus
from stowage.api.objects.pod import Pod
from stowage.engine import Engine
from stowage_benchmarks.core.frozen_heap import frozen_heap
from stowage_benchmarks.core.run import (
    SCHEDULER_NAME,
    CoreResult,
    bench_engine,
    bench_pod,
    core_result,
    node_events,
)
from stowage_benchmarks.workloads import PREEMPTION, pending_pod

PODS_A_NODE = 10
#: Requests 400m: ten of them fill a node.
_SMALL = "400m"
#: Needs two victims.
_LARGE = "600m"
_PRIORITY = 1000
_WARM_UP_PODS = 60
#: Longer than the maximum backoff.
_SECONDS_A_POD = 20.0
_LONG_ENOUGH = 6


def measure_preemption(num_nodes: int, num_pods: int) -> CoreResult:
    """Let `num_pods` pods preempt others on `num_nodes` full nodes."""
    engine = bench_engine()
    engine.handle(node_events(num_nodes), 0.0)
    engine.handle(_filling_pods(num_nodes), 0.0)
    with frozen_heap():
        samples = [
            _one_pod(engine, _preemptor(index), now=_SECONDS_A_POD * (index + 1))
            for index in range(_WARM_UP_PODS + num_pods)
        ]
    return core_result(PREEMPTION, num_nodes, samples[_WARM_UP_PODS:])


class _Stopwatch:
    """CPU time of the thread spent in the engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.whole_ns = 0
        self.cycles_ns = 0

    def handle(self, events: Sequence[Event], now: float) -> list[Instruction]:
        begin = time.thread_time_ns()
        answer = self._engine.handle(events, now)
        self.whole_ns += time.thread_time_ns() - begin
        return answer

    def schedule(self, now: float) -> list[Instruction]:
        begin = time.thread_time_ns()
        answer = self._engine.schedule(now, 1)
        spent = time.thread_time_ns() - begin
        self.whole_ns += spent
        self.cycles_ns += spent
        return answer


def _one_pod(engine: Engine, pod: Pod, now: float) -> tuple[float, float, bool]:
    """Run one pod to its binding; (µs in all, µs of its cycles, whether it was bound)."""
    watch = _Stopwatch(engine)
    watch.handle((PendingPodSeen(pod),), now)
    instructions = watch.schedule(now)
    for _ in range(_LONG_ENOUGH):
        bound = next((each for each in instructions if isinstance(each, BindPod)), None)
        if bound is not None:
            watch.handle(_confirmation(pod, bound.node_name), now)
            return watch.whole_ns / 1e3, watch.cycles_ns / 1e3, True
        outcomes = list(_outcomes(pod, instructions))
        if outcomes:
            instructions = watch.handle(outcomes, now)
        else:
            now += _SECONDS_A_POD / 2
            instructions = watch.schedule(now)
    return watch.whole_ns / 1e3, watch.cycles_ns / 1e3, False


def _outcomes(pod: Pod, instructions: Iterable[Instruction]) -> Iterable[Event]:
    """The events that API calls and watches would produce."""
    for each in instructions:
        if isinstance(each, EvictPod):
            victim = each.victim
            yield EvictionFinished(each.preemptor.uid, victim, was_deleted=True)
            yield AssignedPodGone(victim.namespace, victim.name, victim.uid)
        elif isinstance(each, PatchPodStatus) and each.nominated_node_name:
            status = msgspec.structs.replace(
                pod.status, nominated_node_name=each.nominated_node_name
            )
            yield PendingPodSeen(msgspec.structs.replace(pod, status=status))


def _confirmation(pod: Pod, node_name: str) -> tuple[Event, ...]:
    meta = pod.metadata
    spec = msgspec.structs.replace(pod.spec, node_name=node_name)
    return (
        BindSucceeded(meta.uid, node_name),
        PendingPodGone(meta.namespace, meta.name, meta.uid),
        AssignedPodSeen(msgspec.structs.replace(pod, spec=spec)),
    )


def _preemptor(index: int) -> Pod:
    return _pod(f"high-{index:06d}", index, _LARGE, priority=_PRIORITY)


def _filling_pods(num_nodes: int) -> Iterable[AssignedPodSeen]:
    for index in range(num_nodes * PODS_A_NODE):
        node_name = f"node-{index % num_nodes:05d}"
        started = f"2026-01-01T{index % 24:02d}:{index % 60:02d}:{index % 59:02d}Z"
        pod = _pod(f"low-{index:06d}", index, _SMALL, nodeName=node_name, priority=0)
        status = msgspec.structs.replace(pod.status, start_time=started, phase="Running")
        yield AssignedPodSeen(msgspec.structs.replace(pod, status=status))


def _pod(name: str, index: int, cpu: str, **spec: object) -> Pod:
    manifest = pending_pod("basic", index, SCHEDULER_NAME)
    manifest["metadata"]["name"] = name
    amounts = {"cpu": cpu, "memory": "500Mi"}
    manifest["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    manifest["spec"].update(spec)
    return bench_pod(manifest)
