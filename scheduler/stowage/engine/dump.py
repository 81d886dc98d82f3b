"""The whole state as plain data, for people to read and for tests to compare."""

from __future__ import annotations

from typing import Any

from stowage.engine.state.engine_state import EngineState
from stowage.engine.state.preemptions import OngoingPreemption
from stowage.queue.queued_pod import QueuedPod
from stowage.state.cache import ClusterCache


def dump_state(state: EngineState) -> dict[str, Any]:
    """Nodes with their pods, queues, bindings, consultations and preemptions; visits everything."""
    return {
        "nodes": _nodes(state.cache),
        "queue": {
            place.value: [_queued(queued) for queued in pods]
            for place, pods in state.queue.contents().items()
        },
        "nominations": {
            pod.key: node_name
            for node_name in state.queue.nominator.nodes()
            for pod in state.queue.nominator.pods_on(node_name)
        },
        "bindings": {
            cycle.info.key: {"node": cycle.node_name, "phase": cycle.phase.value}
            for cycle in state.bindings
        },
        "consultations": {
            consultation.info.key: "with extenders" if consultation.is_unanswered else "waiting"
            for consultation in state.consultations
        },
        "storage_assumed": {
            what: _pod_key(state, uid) for what, uid in state.cache.assumed_storage().items()
        },
        "preemptions": [_preemption(preemption) for preemption in state.preemptions],
        "unconfirmed": [pod.key for pod in state.bindings.unconfirmed],
    }


def _nodes(cache: ClusterCache) -> dict[str, Any]:
    snapshot = cache.snapshot()
    requested = snapshot.requested_by_name()
    return {
        name: {
            "exists": bool(snapshot.exists[row]),
            "requested": requested[row],
            "pods": sorted(
                f"{pod.key} ({'assumed' if cache.is_assumed(pod.uid) else 'added'})"
                for pod in snapshot.pods_on(name)
            ),
        }
        for row, name in enumerate(snapshot.node_names)
        if name
    }


def _preemption(preemption: OngoingPreemption) -> dict[str, Any]:
    return {
        "preemptor": preemption.preemptor.key,
        "node": preemption.node_name,
        "awaited": sorted(preemption.unanswered),
        "last": preemption.last_victim.key,
    }


def _pod_key(state: EngineState, uid: str) -> str:
    """``namespace/name`` of a pod in the cache; the UID if it is unknown."""
    pod = state.cache.get_pod(uid)
    return uid if pod is None else pod.key


def _queued(queued: QueuedPod) -> dict[str, Any]:
    return {
        "pod": queued.info.key,
        "attempts": queued.attempts,
        "queued_at": queued.queued_at,
        "initial_attempt_at": queued.initial_attempt_at,
        "unschedulable_plugins": sorted(queued.unschedulable_plugins),
        "gated_by": queued.gating_plugin,
        "last_message": queued.last_message,
    }
