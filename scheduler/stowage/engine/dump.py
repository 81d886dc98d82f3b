"""The whole state as plain data: for a person to read, and for two states to be compared."""

from __future__ import annotations

from typing import Any

from stowage.engine.machine import Machine
from stowage.queue.queued_pod import QueuedPod


def dump_machine(machine: Machine) -> dict[str, Any]:
    """Nodes with their pods, pods by queue, what is under way; costs a pass over everything."""
    snapshot = machine.cache.snapshot()
    requested = snapshot.requested_by_name()
    return {
        "nodes": {
            name: {
                "exists": bool(snapshot.exists[row]),
                "requested": requested[row],
                "pods": sorted(
                    f"{pod.key} ({'assumed' if machine.cache.is_assumed(pod.uid) else 'added'})"
                    for pod in snapshot.pods_on(name)
                ),
            }
            for row, name in enumerate(snapshot.node_names)
            if name
        },
        "queue": {
            place.value: [_queued(queued) for queued in pods]
            for place, pods in machine.queue.contents().items()
        },
        "nominations": {
            pod.key: node_name
            for node_name in machine.queue.nominator.nodes()
            for pod in machine.queue.nominator.pods_on(node_name)
        },
        "bindings": {
            cycle.info.key: {"node": cycle.node_name, "phase": cycle.phase.value}
            for cycle in machine.bindings.values()
        },
        "consultations": {
            consultation.info.key: "with extenders" if consultation.is_out else "waiting"
            for consultation in machine.consultations
        },
        "storage_assumed": {
            what: _pod_key(machine, uid) for what, uid in machine.cache.assumed_storage().items()
        },
        "preemptions": [
            {
                "preemptor": under_way.preemptor.key,
                "node": under_way.node_name,
                "awaited": sorted(under_way.awaited),
                "last": under_way.last.key,
            }
            for under_way in machine.preemptions.values()
        ],
        "unconfirmed": [reference.key for reference, _ in machine.unconfirmed.values()],
    }


def _pod_key(machine: Machine, uid: str) -> str:
    """``namespace/name`` of a pod on a node."""
    pod = machine.cache.get_pod(uid)
    return uid if pod is None else pod.key


def _queued(queued: QueuedPod) -> dict[str, Any]:
    return {
        "pod": queued.info.key,
        "uid": queued.uid,
        "attempts": queued.attempts,
        "queued_at": queued.queued_at,
        "unschedulable_plugins": sorted(queued.unschedulable_plugins),
        "gated_by": queued.gating_plugin,
    }
