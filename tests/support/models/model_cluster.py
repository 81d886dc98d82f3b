"""A model of the API server that executes instructions and feeds two independent watches.

It can lose, delay and refuse answers. The watch of pending pods and the watch of assigned pods and
nodes deliver events independently of each other, as a real API server does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    BindFailed,
    BindSucceeded,
    Event,
    EvictionFinished,
    NodeGone,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
)
from stowage.api.instructions import (
    BindPod,
    ClearNomination,
    ConsultExtenders,
    EvictPod,
    Instruction,
    PatchPodStatus,
    PodReference,
    ReadPod,
    RunPreBind,
    StopPreBind,
)
from stowage.api.objects.meta import Condition
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.values.resources import node_allocatable, pod_requests


class BoundTwice(AssertionError):  # noqa: N818 - it names the finding
    """A pod was bound to two nodes."""


@dataclass
class ModelCluster:
    """Stored pods and nodes, and the undelivered events of the watches.

    Attributes:
        bindings: How often each pod was bound, by UID.
        pending_watch: Undelivered events of the watch of pending pods.
        assigned_watch: Undelivered events of the watch of assigned pods and nodes.
        answers: Undelivered outcomes of instructions.
        lost_answers: How many of the next bindings are made but answered late.
        refusals: How many of the next bindings are refused with a conflict.
        failing_evictions: How many of the next evictions are refused.
        terminating: UIDs of terminating pods, which the kubelet ends later.
        questions: Requests that extenders have not answered.
        pre_binds: Unfinished PreBind work, by UID.
        is_leader: Whether bindings may be written.
        shown: UIDs of pods that the watch of assigned pods has delivered.
    """

    pods: dict[str, Pod] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    bindings: dict[str, int] = field(default_factory=dict)
    pending_watch: deque[Event] = field(default_factory=deque)
    assigned_watch: deque[Event] = field(default_factory=deque)
    answers: deque[Event] = field(default_factory=deque)
    late_answers: deque[Event] = field(default_factory=deque)
    lost_answers: int = 0
    refusals: int = 0
    failing_evictions: int = 0
    terminating: set[str] = field(default_factory=set)
    questions: deque[ConsultExtenders] = field(default_factory=deque)
    conditions: dict[str, str] = field(default_factory=dict)
    pre_binds: dict[str, RunPreBind] = field(default_factory=dict)
    is_leader: bool = True
    shown: set[str] = field(default_factory=set)
    revision: int = 0

    # Actions of users and kubelets

    def create_pod(self, pod: Pod) -> None:
        """Create a pod."""
        pod = self._store(pod)
        if pod.spec.node_name:
            self.assigned_watch.append(AssignedPodSeen(pod))
        else:
            self.pending_watch.append(PendingPodSeen(pod))

    def update_pod(self, pod: Pod) -> None:
        """Update a pod as a user or a controller."""
        self.create_pod(pod)

    def delete_pod(self, uid: str) -> None:
        """Delete a pod, or end it."""
        pod = self.pods.pop(uid, None)
        if pod is None:
            return
        namespace, name = pod.metadata.namespace, pod.metadata.name
        if pod.spec.node_name:
            self.assigned_watch.append(AssignedPodGone(namespace, name, uid))
        else:
            self.pending_watch.append(PendingPodGone(namespace, name, uid))

    def end_terminating(self) -> None:
        """End the terminating pods, as their kubelets do."""
        for uid in sorted(self.terminating):
            self.delete_pod(uid)
        self.terminating.clear()

    def add_node(self, node: Node) -> None:
        """Add or change a node."""
        self.nodes[node.metadata.name] = node
        self.assigned_watch.append(NodeSeen(node))

    def remove_node(self, name: str) -> None:
        """Remove a node; its pods stay until they are deleted."""
        if self.nodes.pop(name, None) is not None:
            self.assigned_watch.append(NodeGone(name))

    def bind_elsewhere(self, uid: str, node_name: str) -> None:
        """Bind a pod as another scheduler."""
        if uid in self.pods and not self.pods[uid].spec.node_name:
            self._bind(uid, node_name)

    # Actions of the shell

    def carry_out(self, instructions: Iterable[Instruction]) -> None:
        """Execute instructions; outcomes wait in `answers`."""
        for instruction in instructions:
            match instruction:
                case BindPod():
                    self._carry_out_bind(instruction)
                case ReadPod():
                    self._answer_read(instruction.pod)
                case ConsultExtenders():
                    self.questions.append(instruction)
                case EvictPod():
                    self._carry_out_eviction(instruction)
                case ClearNomination():
                    self._nominate(instruction.pod.uid, "")
                case PatchPodStatus():
                    self._carry_out_patch(instruction)
                case RunPreBind():
                    self.pre_binds[instruction.pod.uid] = instruction
                case StopPreBind():
                    self.pre_binds.pop(instruction.pod.uid, None)

    def take_events(self, watches: str = "pending assigned") -> list[Event]:
        """Remove and return the events of these watches and the answers, in order of delivery."""
        events: list[Event] = []
        if "assigned" in watches:
            events += self._drain(self.assigned_watch)
            self.shown |= {_pod_uid(event) for event in events}
        events += self._drain(self.answers)
        if "pending" in watches:
            events += self._drain(self.pending_watch)
        return events

    def release_late_answers(self) -> None:
        """Deliver late answers, as the dispatcher does after reading back; a pod may be gone."""
        for answer in self._drain(self.late_answers):
            if isinstance(answer, BindSucceeded) and answer.uid not in self.pods:
                self.answers.append(BindFailed(answer.uid, answer.node_name, "not found"))
            else:
                self.answers.append(answer)

    def delete_while_bound(self) -> None:
        """Delete a bound pod whose binding answer is late; the watch shows both."""
        for answer in list(self.late_answers)[:1]:
            if isinstance(answer, BindSucceeded):
                self.delete_pod(answer.uid)

    def vanish_in_gap(self) -> None:
        """Bind and delete a pod during a watch gap: the next list shows neither."""
        for event in self.assigned_watch:
            if isinstance(event, AssignedPodSeen) and event.pod.metadata.uid not in self.shown:
                uid = event.pod.metadata.uid
                self.delete_pod(uid)
                self.assigned_watch = deque(
                    each for each in self.assigned_watch if _pod_uid(each) != uid
                )
                return

    # Invariants

    def check_bindings(self) -> None:
        """Check that no pod was bound twice."""
        for uid, times in self.bindings.items():
            if times > 1:
                raise BoundTwice(f"pod {uid} was bound {times} times")

    def check_capacity(self) -> None:
        """Check that no node is overcommitted; other schedulers and shrinking nodes may do that."""
        for name, node in self.nodes.items():
            allocatable = node_allocatable(node)
            placed = [pod for pod in self.pods.values() if pod.spec.node_name == name]
            assert len(placed) <= allocatable["pods"], f"too many pods on node {name}"
            for resource in ("cpu", "memory"):
                used = sum(pod_requests(pod).get(resource, 0) for pod in placed)
                assert used <= allocatable[resource], f"{resource} of node {name} overcommitted"

    def unbound(self) -> list[Pod]:
        """Pods without a node."""
        return [pod for pod in self.pods.values() if not pod.spec.node_name]

    def _store(self, pod: Pod) -> Pod:
        self.revision += 1
        metadata = msgspec.structs.replace(pod.metadata, resource_version=str(self.revision))
        stored = msgspec.structs.replace(pod, metadata=metadata)
        self.pods[pod.metadata.uid] = stored
        return stored

    def _bind(self, uid: str, node_name: str) -> None:
        pod = self.pods[uid]
        self.bindings[uid] = self.bindings.get(uid, 0) + 1
        spec = msgspec.structs.replace(pod.spec, node_name=node_name)
        bound = self._store(msgspec.structs.replace(pod, spec=spec))
        gone = PendingPodGone(pod.metadata.namespace, pod.metadata.name, uid)
        self.pending_watch.append(gone)
        self.assigned_watch.append(AssignedPodSeen(bound))

    def _carry_out_bind(self, instruction: BindPod) -> None:
        uid, node_name = instruction.pod.uid, instruction.node_name
        pod = self.pods.get(uid)
        if pod is None:
            self.answers.append(BindFailed(uid, node_name, "not found"))
        elif pod.spec.node_name:
            self.answers.append(BindFailed(uid, node_name, "already assigned"))
        elif not self.is_leader:
            self.answers.append(BindFailed(uid, node_name, "the lease is lost"))
        elif self.refusals:
            self.refusals -= 1
            self.answers.append(BindFailed(uid, node_name, "conflict"))
        else:
            self._bind(uid, node_name)
            late = self.lost_answers > 0
            self.lost_answers -= late
            (self.late_answers if late else self.answers).append(BindSucceeded(uid, node_name))

    def _carry_out_patch(self, patch: PatchPodStatus) -> None:
        pod = self.pods.get(patch.pod.uid)
        if pod is None or pod.spec.node_name or not self.is_leader:
            return
        status = pod.status
        if patch.reason:
            self.conditions[patch.pod.uid] = patch.message
            condition = Condition("PodScheduled", "False", patch.reason, patch.message)
            status = msgspec.structs.replace(status, conditions=(condition,))
        if patch.nominated_node_name is not None:
            nominated = patch.nominated_node_name
            status = msgspec.structs.replace(status, nominated_node_name=nominated)
        stored = self._store(msgspec.structs.replace(pod, status=status))
        self.pending_watch.append(PendingPodSeen(stored))

    def _nominate(self, uid: str, node_name: str) -> None:
        pod = self.pods.get(uid)
        if pod is None or pod.spec.node_name:
            return
        status = msgspec.structs.replace(pod.status, nominated_node_name=node_name)
        self.pending_watch.append(
            PendingPodSeen(self._store(msgspec.structs.replace(pod, status=status)))
        )

    def _carry_out_eviction(self, instruction: EvictPod) -> None:
        victim, preemptor_uid = instruction.victim, instruction.preemptor.uid
        pod = self.pods.get(victim.uid)
        if self.failing_evictions:
            self.failing_evictions -= 1
            self.answers.append(EvictionFinished(preemptor_uid, victim, error="refused"))
            return
        self.answers.append(EvictionFinished(preemptor_uid, victim, was_deleted=pod is not None))
        if pod is None:
            return
        if not pod.spec.node_name:
            self.delete_pod(victim.uid)
            return
        condition = Condition("DisruptionTarget", "True", "PreemptionByScheduler")
        metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-02T00:00:00Z")
        status = msgspec.structs.replace(pod.status, conditions=(condition,))
        pod = self._store(msgspec.structs.replace(pod, metadata=metadata, status=status))
        self.terminating.add(victim.uid)
        self.assigned_watch.append(AssignedPodSeen(pod))

    def _answer_read(self, reference: PodReference) -> None:
        """Report only an absent pod: a report that it exists could arrive after its deletion."""
        pod = self.pods.get(reference.uid)
        if pod is None or not pod.spec.node_name:
            gone = AssignedPodGone(reference.namespace, reference.name, reference.uid)
            self.answers.append(gone)

    @staticmethod
    def _drain(queue: deque[Event]) -> list[Event]:
        drained = list(queue)
        queue.clear()
        return drained


def _pod_uid(event: Event) -> str:
    """The UID of the pod in an event of the watch of assigned pods; empty for nodes."""
    match event:
        case AssignedPodSeen():
            return event.pod.metadata.uid
        case AssignedPodGone():
            return event.uid
        case _:
            return ""
