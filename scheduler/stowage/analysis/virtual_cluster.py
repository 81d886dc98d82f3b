"""A cluster in memory that does at once what its scheduler decides.

It stands for the API server, the kubelets, the volume provisioner and the controllers. So the
engine decides about pods as it would in the real cluster, including backoff, preemption and the
binding of volumes, and no request leaves the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from stowage.analysis.allocated_claims import (
    deallocate_claim,
    delete_claim,
    free_claims,
    hand_over_claims,
    release_claims,
    write_claims,
)
from stowage.analysis.cluster_objects import POD, ClusterObjects
from stowage.analysis.generated_claims import with_generated_claims
from stowage.analysis.loaded_cluster import LoadedCluster
from stowage.analysis.pods_by_node import PodsByNode, is_finished
from stowage.analysis.provisioned_volumes import written_volumes
from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    BindSucceeded,
    DeviceObjectSeen,
    DisruptionBudgetSeen,
    Event,
    EvictionFinished,
    ExtendersAnswered,
    NodeGone,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
    PreBindFinished,
    StorageSeen,
    VictimsReviewed,
    VolumesWritten,
)
from stowage.api.instructions import (
    AttemptResult,
    BindByExtender,
    BindClaims,
    BindPod,
    BindVolumes,
    ConsultExtenders,
    ConsultOnVictims,
    DeallocateClaim,
    DeleteClaim,
    EvictPod,
    Instruction,
    PatchPodStatus,
    ReleaseClaims,
    RunPreBind,
)
from stowage.api.objects.meta import controller_of
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod, PodStatus
from stowage.api.objects.policy import PodDisruptionBudget
from stowage.api.status import Code
from stowage.engine.state.wall_clock import WallClock

DAEMON_SET = "DaemonSet"

#: Backoffs and gates end within this many seconds; the flush of unschedulable pods comes later.
_HORIZON_S = 60.0
_AGAIN = "#again-"
"""Between the UID of the first pod and how often a controller has made it again. No name has a #,
and UIDs may be made of names."""


class Preempted(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that was evicted for another one (``namespace/name`` each)."""

    pod: str
    node: str
    preemptor: str


class VirtualCluster:
    """Carries out the instructions of a loaded cluster's engine.

    The engine and the objects change: nobody else may use them afterwards. The engine's wall clock
    goes on with `now`.

    Args:
        cluster: The cluster at the start.
        now: The time of the engine's last call, in seconds.
        observe: Called with each instruction before it is carried out.

    Attributes:
        objects: The objects as they are now.
        now: The time; the caller may advance it.
        preempted: The evicted pods, in order.
        remade: Evicted pod -> its node, for the pods that their controllers made again.
        messages: Pod -> the message of its last refusal.
        tied: The pods whose last attempt ended with a choice between equally good nodes.
    """

    def __init__(
        self,
        cluster: LoadedCluster,
        now: float = 0.0,
        observe: Callable[[Instruction], None] = lambda _instruction: None,
    ) -> None:
        self.objects: ClusterObjects = cluster.objects
        self.engine = cluster.engine
        self.now = now
        self._unix_offset_s = cluster.engine.state.wall_clock() - now
        cluster.engine.state.wall_clock = WallClock(self._unix_s)
        self._observe = observe
        self.preempted: list[Preempted] = []
        self.remade: dict[str, str] = {}
        self.messages: dict[str, str] = {}
        self.tied: set[str] = set()

    def forget_history(self) -> None:
        """Empty what is remembered of the past: evictions, pods made again, ties and changes."""
        self.preempted.clear()
        self.remade.clear()
        self.tied.clear()
        self.pods.forget_changes()

    # Changes from outside

    def show(self, events: Sequence[Event]) -> None:
        """Show events to the engine; the caller has changed the objects."""
        self._handle(events)

    def put_node(self, node: Node) -> None:
        """Add or change a node."""
        self.objects.add(node)
        self._handle([NodeSeen(node)])

    def remove_node(self, name: str) -> None:
        """Remove a node; its pods stay until they are deleted."""
        self.objects.remove("Node", name)
        self._handle([NodeGone(name)])

    def put_budget(self, budget: PodDisruptionBudget) -> None:
        """Add or change a disruption budget."""
        self.objects.add(budget)
        self._handle([DisruptionBudgetSeen(budget)])

    def create_pods(self, pods: Sequence[Pod]) -> None:
        """Create pending pods, and the claims that templates make for them."""
        made = list(map(self.with_claims, pods))
        for pod in made:
            self.objects.add(pod)
        self._handle([PendingPodSeen(pod) for pod in made])

    def with_claims(self, pod: Pod) -> Pod:
        """Create the claims that templates make for a pod; the pod, which names them."""
        pod, claims = with_generated_claims(pod, self.objects)
        for claim in claims:
            self.objects.add(claim)
        self._handle(list(map(DeviceObjectSeen, claims)))
        return pod

    def create(self, objects: ClusterObjects) -> None:
        """Create objects, or replace those with the same names; pods come last."""
        for kind in objects.by_kind.values():
            for obj in kind.values():
                self.objects.add(obj)
        made = ClusterObjects({**objects.by_kind, "Pod": {}})
        for pod in objects.pods():
            named = self.with_claims(pod)
            self.objects.add(named)
            made.add(named)
        self._handle(list(made.events()))

    def place_pod(self, pod: Pod) -> None:
        """Create a pod that has a node."""
        self.objects.add(pod)
        self._handle([AssignedPodSeen(pod)])

    @property
    def pods(self) -> PodsByNode:
        """The pods that have not finished."""
        return self.objects.pods_by_node()

    def moves(self) -> Iterator[tuple[str, str | None, str]]:
        """The changed pods that have a node: the pod, its node before as in `changed`, its node."""
        for key, before in self.pods.changed.items():
            pod = self.objects.pod(key)
            if pod is not None and pod.spec.node_name and not is_finished(pod):
                yield key, before, pod.spec.node_name

    def delete_pod(self, pod: Pod) -> None:
        """Delete a pod, and free its room."""
        self._handle(self.deletion_of(pod))

    def evict_pod(self, pod: Pod) -> bool:
        """Delete a pod; whether its controller made it again."""
        gone, made = self.deletion_of(pod), self._make_again(pod)
        self._handle([*gone, *made])
        return bool(made)

    def set_aside_pending(self) -> None:
        """Let the scheduler try no pending pod again; the pods stay among the objects.

        Pods that have a nomination, or are being bound, are left to the scheduler.
        """
        state = self.engine.state
        pending = filter(None, map(self.objects.pod, self.pods.pending()))
        self._handle(
            [
                PendingPodGone(meta.namespace, meta.name, meta.uid)
                for meta in [pod.metadata for pod in pending]
                if meta.uid not in state.bindings and meta.uid not in state.queue.nominator
            ]
        )

    def run(self, until: float | None = None) -> None:
        """Let the scheduler work until no pod is ready, and none will be up to a time.

        Args:
            until: The time; None for a minute from now.
        """
        until = self.now + _HORIZON_S if until is None else until
        while True:
            self.settle()
            deadline = self.engine.next_deadline()
            if deadline is None or deadline > until:
                return
            self.now = max(self.now, deadline)
            self._handle([])

    def settle(self) -> None:
        """Let the scheduler work until no pod is ready at this time."""
        while self.engine.has_ready_pods():
            answer = self.engine.schedule(self.now, 1)
            self._note_tie(answer)
            self._carry_out(answer)

    def _note_tie(self, answer: Sequence[Instruction]) -> None:
        is_tie = any(size > 1 for size in self.engine.state.ties.sizes)
        for each in answer:
            if isinstance(each, AttemptResult):
                (self.tied.add if is_tie else self.tied.discard)(each.pod.key)

    def _unix_s(self) -> float:
        return self._unix_offset_s + self.now

    # The API server and what stands behind it

    def _handle(self, events: Sequence[Event]) -> None:
        self._carry_out(self.engine.handle(events, self.now))

    def _carry_out(self, instructions: Iterable[Instruction]) -> None:
        """Execute instructions, those that their outcomes cause included."""
        pending = list(instructions)
        while pending:
            events = [event for each in pending for event in self._outcome(each)]
            pending = self.engine.handle(events, self.now) if events else []

    def _outcome(self, instruction: Instruction) -> Sequence[Event]:
        """The events of one instruction's execution."""
        self._observe(instruction)
        match instruction:
            case BindPod() | BindByExtender():
                return self._bind(instruction)
            case EvictPod():
                return self._evict(instruction)
            case BindVolumes():
                return self._write_volumes(instruction)
            case BindClaims() | ReleaseClaims() | DeallocateClaim() | DeleteClaim():
                return self._change_claims(instruction)
            case RunPreBind():
                return [PreBindFinished(instruction.pod.uid, instruction.number, Code.SUCCESS)]
            case PatchPodStatus():
                self._patch_status(instruction)
            case ConsultExtenders():
                # Extenders are not asked: they accept every node and add no score.
                reference, number = instruction.pod, instruction.number
                return [ExtendersAnswered(reference.uid, number, instruction.node_names)]
            case ConsultOnVictims():
                reference, number = instruction.pod, instruction.number
                return [VictimsReviewed(reference.uid, number, instruction.candidates)]
        return ()

    def _change_claims(
        self, instruction: BindClaims | ReleaseClaims | DeallocateClaim | DeleteClaim
    ) -> Sequence[Event]:
        match instruction:
            case BindClaims():
                return write_claims(instruction, self.objects, self._unix_s())
            case ReleaseClaims():
                return release_claims(instruction.pod.uid, instruction.claims, self.objects)
            case DeallocateClaim():
                return deallocate_claim(instruction.claim.key, self.objects)
            case DeleteClaim():
                return delete_claim(instruction.claim, self.objects)

    def _patch_status(self, patch: PatchPodStatus) -> None:
        if patch.message:
            self.messages[patch.pod.key] = patch.message
        pod = self.objects.pod(patch.pod.key)
        if patch.nominated_node_name is not None and pod is not None:
            status = replace(pod.status, nominated_node_name=patch.nominated_node_name)
            self.objects.add(replace(pod, status=status))

    def _bind(self, instruction: BindPod | BindByExtender) -> Sequence[Event]:
        reference, node_name = instruction.pod, instruction.node_name
        pod = self.objects.pod(reference.key)
        if pod is None:
            return ()
        bound = replace(pod, spec=replace(pod.spec, node_name=node_name))
        if isinstance(instruction, BindPod) and instruction.annotations:
            annotations = {**pod.metadata.annotations, **instruction.annotations}
            bound = replace(bound, metadata=replace(pod.metadata, annotations=annotations))
        self.objects.add(bound)
        self.messages.pop(reference.key, None)
        gone = PendingPodGone(reference.namespace, reference.name, reference.uid)
        return [BindSucceeded(reference.uid, node_name), gone, AssignedPodSeen(bound)]

    def _evict(self, instruction: EvictPod) -> Sequence[Event]:
        finished = EvictionFinished(instruction.preemptor.uid, instruction.victim, was_deleted=True)
        victim = self.objects.pod(instruction.victim.key)
        if victim is None or victim.metadata.uid != instruction.victim.uid:
            return [finished]
        node_name = victim.spec.node_name
        self.preempted.append(
            Preempted(instruction.victim.key, node_name, instruction.preemptor.key)
        )
        return [finished, *self.deletion_of(victim), *self._make_again(victim)]

    def _make_again(self, pod: Pod) -> list[Event]:
        """The pod as its controller makes it again; it keeps its name, so it is recognised."""
        owner = controller_of(pod.metadata)
        if owner is None or owner.kind == DAEMON_SET:
            return []
        key = pod.metadata.namespaced_name
        self.remade.setdefault(key, pod.spec.node_name)
        made = pod_made_again(pod)
        self.objects.add(made)
        return [*hand_over_claims(pod, made.metadata.uid, self.objects), PendingPodSeen(made)]

    def deletion_of(self, pod: Pod) -> list[Event]:
        """Delete a pod, and return the events, which are still to be shown to the engine."""
        meta = pod.metadata
        self.objects.remove(POD, meta.namespaced_name)
        gone = AssignedPodGone if pod.spec.node_name else PendingPodGone
        released = free_claims(pod, self.objects)
        return [gone(meta.namespace, meta.name, meta.uid), *released]

    def _write_volumes(self, instruction: BindVolumes) -> Sequence[Event]:
        written = written_volumes(instruction, self.objects)
        for obj in written:
            self.objects.add(obj)
        # Shown first: what a write is to have done is examined when it is reported.
        return [*map(StorageSeen, written), VolumesWritten(instruction.pod.uid, instruction.number)]


def pod_made_again(pod: Pod) -> Pod:
    """The pending pod that a controller makes in place of this one."""
    uid = uid_made_again(pod.metadata.uid)
    meta = replace(pod.metadata, uid=uid, resource_version="", deletion_timestamp=None)
    status = PodStatus(resource_claim_statuses=pod.status.resource_claim_statuses)
    return Pod(meta, replace(pod.spec, node_name=""), status)


def uid_made_again(uid: str) -> str:
    """The UID of the pod that replaces the pod with this UID."""
    first, _, times = uid.partition(_AGAIN)
    return f"{first}{_AGAIN}{int(times) + 1 if times.isdecimal() else 1}"
