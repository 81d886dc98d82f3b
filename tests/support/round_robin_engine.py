"""An engine that binds pods to nodes in turn, to test the shell without the scheduler."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    BindFailed,
    BindSucceeded,
    Event,
    NodeGone,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
)
from stowage.api.instructions import (
    AttemptResult,
    BindPod,
    EmitEvent,
    Instruction,
    PatchPodStatus,
    PodBound,
    PodReference,
)
from stowage.api.interruptible import Interruptible
from stowage.engine import Engine
from stowage.state.pods.pod_info import PodInfo


class RoundRobinEngine(Engine):
    """Records every event; for a pod without any node it patches the status and emits an Event."""

    def __init__(self, scheduler_name: str = "stowage", deadline: float | None = None) -> None:
        self.seen: list[Event] = []
        self.nodes: dict[str, None] = {}
        self.assigned: dict[str, str] = {}
        self.ready: deque[PodReference] = deque()
        self.being_bound: dict[str, PodReference] = {}
        self.deadline = deadline
        self._scheduler_name = scheduler_name

    def handle(self, events: Iterable[Event], now: float) -> list[Instruction]:
        instructions: list[Instruction] = []
        for event in events:
            self.seen.append(event)
            self._handle(event, instructions)
        if self.deadline is not None and self.deadline <= now:
            self.deadline = None
        return instructions

    def handling_steps(
        self, arrived: Iterable[Event], now: float
    ) -> Interruptible[list[Instruction]]:
        yield from ()
        return self.handle(arrived, now)

    def _handle(self, event: Event, instructions: list[Instruction]) -> None:
        match event:
            case NodeSeen():
                self.nodes[event.node.metadata.name] = None
            case NodeGone():
                self.nodes.pop(event.name, None)
            case AssignedPodSeen():
                self.assigned[event.pod.metadata.uid] = event.pod.spec.node_name
            case AssignedPodGone():
                self.assigned.pop(event.uid, None)
            case PendingPodSeen():
                self._enqueue(event)
            case PendingPodGone():
                self.ready = deque(pod for pod in self.ready if pod.uid != event.uid)
            case BindSucceeded():
                pod = self.being_bound.pop(event.uid)
                instructions += self._bound(pod, event.node_name)
            case BindFailed():
                self.ready.append(self.being_bound.pop(event.uid))

    def _enqueue(self, event: PendingPodSeen) -> None:
        metadata = event.pod.metadata
        pod = PodReference(metadata.namespace, metadata.name, metadata.uid)
        if pod not in self.ready and pod.uid not in self.being_bound:
            self.ready.append(pod)

    def _bound(self, pod: PodReference, node_name: str) -> list[Instruction]:
        note = f"Successfully assigned {pod.key} to {node_name}"
        return [
            PodBound(pod, node_name, self._scheduler_name, 1, 0.01),
            EmitEvent(pod, "Normal", "Scheduled", "Binding", note, self._scheduler_name),
        ]

    def schedule(
        self, now: float, budget: int, is_over: Callable[[], bool] = lambda: False
    ) -> list[Instruction]:
        instructions: list[Instruction] = []
        while self.ready and budget:
            budget -= 1
            pod = self.ready.popleft()
            instructions += self._place(pod) if self.nodes else self._reject(pod)
            if is_over():
                break
        return instructions

    def scheduling_steps(
        self, now: float, budget: int, is_over: Callable[[], bool] = lambda: False
    ) -> Interruptible[list[Instruction]]:
        yield from ()
        return self.schedule(now, budget, is_over)

    def _place(self, pod: PodReference) -> list[Instruction]:
        node = next(iter(self.nodes))
        self.nodes[node] = self.nodes.pop(node)
        self.being_bound[pod.uid] = pod
        attempt = AttemptResult(pod, "scheduled", self._scheduler_name, 1, node_name=node)
        return [BindPod(pod, node), attempt]

    def _reject(self, pod: PodReference) -> list[Instruction]:
        message = "0/0 nodes are available: ."
        name = self._scheduler_name
        return [
            AttemptResult(pod, "unschedulable", name, 1, message=message),
            PatchPodStatus(pod, "Unschedulable", message),
            EmitEvent(pod, "Warning", "FailedScheduling", "Scheduling", message, name),
        ]

    def pre_bind(self, uid: str, plugin: str) -> None:
        """Nothing: it has no plugins."""

    def next_deadline(self) -> float | None:
        return self.deadline

    def has_ready_pods(self) -> bool:
        return bool(self.ready)

    def pending_counts(self) -> Mapping[str, int]:
        return {"active": len(self.ready), "backoff": 0, "unschedulable": 0, "gated": 0}

    def oldest_attempt_at(self) -> float | None:
        """Nothing: it keeps no times."""
        return None

    def incoming_counts(self) -> Counter[tuple[str, str]]:
        return Counter({("active", "UnschedulablePodAdd"): len(self.seen)})

    def unschedulable_counts(self) -> Mapping[tuple[str, str], int]:
        return {}

    def evaluation_counts(self) -> Counter[tuple[str, str, str]]:
        return Counter({("RoundRobin", "Filter", self._scheduler_name): len(self.seen)})

    def volume_error_counts(self) -> Mapping[str, int]:
        """Nothing: it has no volumes."""
        return {}

    def plugin_failure_counts(self) -> Mapping[str, int]:
        """Nothing: it has no plugins."""
        return {}

    def in_flight_event_counts(self) -> Mapping[str, int]:
        return {}

    def custom_resources(self) -> frozenset[str]:
        """Nothing: no plugin registers events of custom resources."""
        return frozenset()

    def pods(self) -> Iterator[PodInfo]:
        return iter(())

    def node_names(self) -> list[str]:
        return list(self.nodes)

    def dump(self) -> dict[str, Any]:
        times = {"queued_at": 0.0, "initial_attempt_at": None}
        active = [{"pod": pod.key, **times} for pod in self.ready]
        return {"nodes": list(self.nodes), "queue": {"active": active}}

    def cache_counts(self) -> Mapping[str, int]:
        return {
            "nodes": len(self.nodes),
            "pods": len(self.assigned),
            "assumed_pods": len(self.being_bound),
        }
