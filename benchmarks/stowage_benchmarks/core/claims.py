"""Measures the CPU cost of pods with a resource claim inside the engine, without I/O.

Each pod has a claim of its own for one device, by class and CEL selector. The measured time covers
the events of the claim too: when it arrives, when its writes are answered, when the watch shows it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import chain

from msgspec.structs import replace

from simcluster.kubelet.nodes import bench_node
from stowage.api.decoding.decode import convert_object
from stowage.api.events import (
    AssignedPodSeen,
    BindSucceeded,
    ClaimsWritten,
    DeviceObjectSeen,
    Event,
    PendingPodGone,
    PendingPodSeen,
)
from stowage.api.instructions import BindClaims, BindPod
from stowage.api.objects.device import DeviceClass, ResourceClaim, ResourceSlice
from stowage.api.objects.pod import Pod
from stowage.api.values.claim_writes import with_finalizer, with_reservation
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
from stowage_benchmarks.devices import (
    CLAIMS_PER_NODE,
    device_class,
    network_slice,
    other_slice,
    resource_claim,
    resource_slice,
    with_device,
)
from stowage_benchmarks.workloads import CLAIMS, NAMESPACE, NETWORK_DEVICES, Json, pending_pod

_NOW = "2026-01-01T00:00:00Z"
_NODES_A_SLICE = 5


def measure_claims(num_nodes: int, num_pods: int) -> CoreResult:
    """Schedule `num_pods` pods with a claim on `num_nodes` nodes with eight devices each."""
    return _measure(CLAIMS, map(resource_slice, _names(num_nodes)), num_nodes, num_pods)


def measure_network_devices(num_nodes: int, num_pods: int) -> CoreResult:
    """`measure_claims` with slices that all nodes of a zone can use, one for five nodes.

    The nodes have eight devices each of another driver.
    """
    num_slices = max(num_nodes // _NODES_A_SLICE, -(-(WARM_UP_PODS + num_pods) // CLAIMS_PER_NODE))
    slices = chain(map(other_slice, _names(num_nodes)), map(network_slice, range(num_slices)))
    return _measure(NETWORK_DEVICES, slices, num_nodes, num_pods)


def _names(num_nodes: int) -> Iterator[str]:
    return (bench_node(index)["metadata"]["name"] for index in range(num_nodes))


def _measure(workload: str, slices: Iterable[Json], num_nodes: int, num_pods: int) -> CoreResult:
    engine = bench_engine()
    engine.handle(node_events(num_nodes), 0.0)
    engine.handle([DeviceObjectSeen(convert_object(DeviceClass, device_class()))], 0.0)
    engine.handle((DeviceObjectSeen(convert_object(ResourceSlice, it)) for it in slices), 0.0)
    with frozen_heap():
        samples = [_one_pod(engine, index) for index in range(WARM_UP_PODS + num_pods)]
    return core_result(workload, num_nodes, samples[WARM_UP_PODS:])


def _one_pod(engine: Engine, index: int) -> tuple[float, float, bool]:
    """Run one pod to its confirmed binding; (µs in all, µs of the cycle, whether it was bound)."""
    now = float(index)
    pod = bench_pod(with_device(pending_pod(CLAIMS, index, SCHEDULER_NAME)))
    meta = pod.metadata
    claim = convert_object(ResourceClaim, resource_claim(NAMESPACE, meta.name, meta.uid))
    arrival = (DeviceObjectSeen(claim), PendingPodSeen(pod))
    begin = time.thread_time_ns()
    engine.handle(arrival, now)
    seen = time.thread_time_ns()
    instructions = engine.schedule(now, 1)
    scheduled = time.thread_time_ns()
    writes = next((each for each in instructions if isinstance(each, BindClaims)), None)
    if writes is None:
        return (scheduled - begin) / 1e3, (scheduled - seen) / 1e3, False
    written = _written(writes)
    resumed = time.thread_time_ns()
    instructions = engine.handle((written,), now)
    whole = scheduled - begin + time.thread_time_ns() - resumed
    bound = next((each for each in instructions if isinstance(each, BindPod)), None)
    if bound is None:
        return whole / 1e3, (scheduled - seen) / 1e3, False
    confirmation = _confirmation(pod, bound.node_name, written)
    resumed = time.thread_time_ns()
    engine.handle(confirmation, now)
    whole += time.thread_time_ns() - resumed
    return whole / 1e3, (scheduled - seen) / 1e3, True


def _written(writes: BindClaims) -> ClaimsWritten:
    """The answer of the API server to the writes of a pod."""
    claims = []
    for wanted in writes.claims:
        claim = with_reservation(with_finalizer(wanted.claim), wanted, writes.pod, _NOW)
        claims.append(replace(claim, metadata=replace(claim.metadata, resource_version="2")))
    return ClaimsWritten(writes.pod.uid, writes.number, tuple(claims))


def _confirmation(pod: Pod, node_name: str, written: ClaimsWritten) -> tuple[Event, ...]:
    """What the watches and the answer to the Binding say."""
    meta = pod.metadata
    return (
        *(DeviceObjectSeen(claim) for claim in written.claims),
        BindSucceeded(meta.uid, node_name),
        PendingPodGone(meta.namespace, meta.name, meta.uid),
        AssignedPodSeen(replace(pod, spec=replace(pod.spec, node_name=node_name))),
    )
