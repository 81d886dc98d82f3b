"""An engine driver for pod groups: groups, members, and an API server that binds and evicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from msgspec.structs import replace

from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    BindSucceeded,
    EvictionFinished,
    PendingPodGone,
    PendingPodSeen,
    PodGroupGone,
    PodGroupSeen,
)
from stowage.api.instructions import (
    BindPod,
    EvictPod,
    Instruction,
    PatchPodGroupStatus,
    PatchPodStatus,
)
from stowage.api.objects.meta import Condition, ObjectMeta
from stowage.api.objects.pod import Pod, PodSchedulingGroup
from stowage.api.objects.pod_groups import (
    BasicSchedulingPolicy,
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    PodGroupStatus,
    TopologyConstraint,
)
from stowage.engine import Engine
from tests.support.builders import make_pod
from tests.support.engines import default_engine
from tests.support.models.engine_driver import EngineDriver


def make_group(
    name: str = "g", min_count: int | None = None, *, topology: str = "", **spec: Any
) -> PodGroup:
    """A gang of at least `min_count` pods, or a basic group; UID is ``uid-<name>``."""
    policy = (
        PodGroupSchedulingPolicy(basic=BasicSchedulingPolicy())
        if min_count is None
        else PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count))
    )
    if topology:
        constraints = PodGroupSchedulingConstraints((TopologyConstraint(topology),))
        spec["scheduling_constraints"] = constraints
    metadata = ObjectMeta(name=name, namespace="default", uid=f"uid-{name}")
    return PodGroup(metadata, PodGroupSpec(policy, **spec))


def make_member(name: str, group: str = "g", **fields: Any) -> Pod:
    """A pending member that wants one CPU; `fields` are those of `make_pod`."""
    return make_pod(name, scheduling_group=PodSchedulingGroup(group), **{"cpu": "1", **fields})


class GangDriver(EngineDriver):
    """An engine and the pods it was shown; Bindings succeed at once unless `holds_bindings`.

    Args:
        holds_bindings: Whether the API server does not answer Bindings.
        choose: Breaks ties.
        make: Builds the engine.
        options: Of `make`.

    Attributes:
        evict: Answers an eviction; by default the victim is gone at once.
    """

    def __init__(
        self,
        *,
        holds_bindings: bool = False,
        choose: Callable[[int], int] = lambda _num_ties: 0,
        make: Callable[..., Engine] = default_engine,
        **options: Any,
    ) -> None:
        super().__init__(partial(make, **options), choose)
        self.holds_bindings = holds_bindings
        self.pods: dict[str, Pod] = {}
        self.groups: dict[str, PodGroup] = {}
        self.evicted: list[str] = []
        self.evict: Callable[[EvictPod], None] = self._evict

    def show_group(self, group: PodGroup) -> None:
        """Show a group."""
        self.groups[group.metadata.name] = group
        self.handle(PodGroupSeen(group))

    def delete_group(self, name: str = "g") -> None:
        """Delete a group."""
        del self.groups[name]
        self.handle(PodGroupGone("default", name))

    def create_members(self, *names: str, group: str = "g", **fields: Any) -> None:
        """Create members; `fields` are those of `make_member`."""
        for name in names:
            self.show(make_member(name, group, **fields))

    def show(self, pod: Pod) -> None:
        """Show a pod, pending or bound."""
        self.pods[pod.metadata.name] = pod
        self.handle(AssignedPodSeen(pod) if pod.spec.node_name else PendingPodSeen(pod))

    def delete(self, name: str) -> None:
        """Delete a pod; it is gone at once."""
        pod = self.pods.pop(name)
        gone = AssignedPodGone if pod.spec.node_name else PendingPodGone
        self.handle(gone("default", name, pod.metadata.uid))

    def run(self, seconds: float = 0.0, budget: int = 100) -> None:
        """Let time pass in steps of at most a second, and schedule after each."""
        end = self.now + seconds
        while True:
            self.schedule(budget)
            if self.now >= end:
                return
            self.advance(min(1.0, end - self.now))

    def node_of(self, name: str) -> str:
        """The node of a pod; empty while it is pending."""
        return self.pods[name].spec.node_name

    def bound(self, *names: str) -> list[str]:
        """Those of these pods that have a node, or of all pods."""
        return [name for name in names or self.pods if self.node_of(name)]

    def condition(self, name: str = "g") -> tuple[str, str, str]:
        """Status, reason and message of a group's condition; empty without one."""
        found = self.groups[name].status.conditions
        return (found[0].status, found[0].reason, found[0].message) if found else ("", "", "")

    def take_messages(self) -> dict[str, str]:
        """The message of the last condition of each pod, by name."""
        patches = self.take(PatchPodStatus)
        return {each.pod.name: each.message for each in patches if each.reason}

    def carry_out(self, instructions: Iterable[Instruction]) -> None:
        """Write conditions, bind pods and delete victims, each with what the watches show then."""
        for each in instructions:
            if isinstance(each, PatchPodGroupStatus):
                self._patch(each)
            elif isinstance(each, BindPod) and not self.holds_bindings:
                self._bind(each)
            elif isinstance(each, EvictPod):
                self.evict(each)

    def start_to_leave(self, evict: EvictPod) -> None:
        """Answer an eviction whose victim is terminating until it is deleted."""
        self.evicted.append(evict.victim.name)
        pod = self.pods[evict.victim.name]
        metadata = replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        self.handle(EvictionFinished(evict.preemptor.uid, evict.victim, was_deleted=True))
        self.show(replace(pod, metadata=metadata))

    def _patch(self, patch: PatchPodGroupStatus) -> None:
        condition = Condition("PodGroupScheduled", patch.status, patch.reason, patch.message)
        group = replace(self.groups[patch.group.name], status=PodGroupStatus((condition,)))
        self.show_group(group)

    def _bind(self, bind: BindPod) -> None:
        pod = self.pods[bind.pod.name]
        bound = replace(pod, spec=replace(pod.spec, node_name=bind.node_name))
        self.pods[bind.pod.name] = bound
        self.handle(
            BindSucceeded(bind.pod.uid, bind.node_name),
            PendingPodGone("default", bind.pod.name, bind.pod.uid),
            AssignedPodSeen(bound),
        )

    def _evict(self, evict: EvictPod) -> None:
        self.evicted.append(evict.victim.name)
        self.handle(EvictionFinished(evict.preemptor.uid, evict.victim, was_deleted=True))
        self.delete(evict.victim.name)
