"""The expected state of an engine, derived from its events and instructions in plain dicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    Event,
    NodeGone,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
)
from stowage.api.instructions import AttemptResult, Instruction
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.values.resources import node_allocatable, pod_requests

MAX_BACKOFF_S = 10.0


@dataclass
class ExpectedState:
    """Nodes, pods on nodes, pending pods, and their backoffs.

    Attributes:
        nodes: By name.
        placed: UID -> pod that a watch showed on a node.
        assumed: UID -> node that the engine has chosen, until the binding is confirmed or fails.
        waiting: UID -> existing pending pod with our scheduler name.
        ended: UIDs of deleted pods that were on a node; they never become pending again.
        revived: The exceptions to `ended`: the lagging watch of pending pods showed them later.
        not_before: UID -> earliest time of the next attempt, after errors.
    """

    scheduler_name: str
    nodes: dict[str, Node] = field(default_factory=dict)
    placed: dict[str, Pod] = field(default_factory=dict)
    assumed: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, Pod] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    revived: set[str] = field(default_factory=set)
    not_before: dict[str, float] = field(default_factory=dict)
    _errors: Counter[str] = field(default_factory=Counter)
    _decided: dict[str, Pod] = field(default_factory=dict)

    def take_events(self, events: Iterable[Event]) -> None:
        """Apply the events of one call."""
        for event in events:
            match event:
                case NodeSeen():
                    self.nodes[event.node.metadata.name] = event.node
                case NodeGone():
                    self.nodes.pop(event.name, None)
                case AssignedPodSeen():
                    self.placed[event.pod.metadata.uid] = event.pod
                    self.assumed.pop(event.pod.metadata.uid, None)
                case AssignedPodGone():
                    self.placed.pop(event.uid, None)
                    self.assumed.pop(event.uid, None)
                    self.ended.add(event.uid)
                    self.revived.discard(event.uid)
                case PendingPodSeen() if event.pod.spec.scheduler_name == self.scheduler_name:
                    self.waiting[event.pod.metadata.uid] = event.pod
                    self.revived.add(event.pod.metadata.uid)
                case PendingPodGone():
                    self.waiting.pop(event.uid, None)

    def take_instructions(self, instructions: Iterable[Instruction], now: float) -> None:
        """Apply an answer; fail if it schedules a pod during its backoff or overcommits a node."""
        for each in instructions:
            if isinstance(each, AttemptResult):
                if each.result == "scheduled":
                    self._check_backoff(each, now)
                    self.assumed[each.pod.uid] = each.node_name
                    self._decided[each.pod.uid] = self.waiting[each.pod.uid]
                    self._check_capacity(each.node_name)
                else:
                    was_assumed = self.assumed.pop(each.pod.uid, None) is not None
                    if not was_assumed:
                        self._check_backoff(each, now)
                    self._note_failure(each, now)

    def contents_of_nodes(self) -> dict[str, tuple[bool, int, list[str]]]:
        """For each node: whether it exists, its requested CPU, and the UIDs of its pods."""
        locations = self.locations()
        names = self.nodes.keys() | set(locations.values())
        contents = {}
        for name in names:
            uids = sorted(uid for uid, where in locations.items() if where == name)
            contents[name] = (name in self.nodes, sum(map(self._cpu_of, uids)), uids)
        return contents

    def locations(self) -> dict[str, str]:
        """UID -> node of every placed or assumed pod."""
        return self.assumed | {uid: pod.spec.node_name for uid, pod in self.placed.items()}

    def _cpu_of(self, uid: str) -> int:
        return pod_requests(self.placed.get(uid) or self._decided[uid]).get("cpu", 0)

    def _check_capacity(self, node_name: str) -> None:
        allocatable = node_allocatable(self.nodes[node_name])
        uids = [uid for uid, where in self.locations().items() if where == node_name]
        cpu = sum(self._cpu_of(uid) for uid in uids)
        assert cpu <= allocatable["cpu"], f"node {node_name}: {cpu} of {allocatable['cpu']}"
        assert len(uids) <= allocatable["pods"], f"node {node_name}: {len(uids)} pods"

    def _check_backoff(self, attempt: AttemptResult, now: float) -> None:
        until = self.not_before.get(attempt.pod.uid, 0.0)
        assert now >= until, f"pod {attempt.pod.name} tried at {now}, backs off until {until}"

    def _note_failure(self, attempt: AttemptResult, now: float) -> None:
        uid = attempt.pod.uid
        if attempt.unschedulable_plugins:
            self._errors[uid] = 0
            self.not_before.pop(uid, None)
        else:
            self._errors[uid] += 1
            self.not_before[uid] = now + min(MAX_BACKOFF_S, 2.0 ** (self._errors[uid] - 1))
