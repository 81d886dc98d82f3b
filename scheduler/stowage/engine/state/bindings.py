"""Pods that are assumed on a node and not bound yet."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from itertools import count

import msgspec

from stowage.api.config.extenders import BindingExtender
from stowage.api.instructions import PodReference
from stowage.api.status import SUCCESS, Status
from stowage.api.values.deadlines import earlier
from stowage.engine.state.binding_durations import BindingDurations
from stowage.engine.state.created_claims import CreatedClaims
from stowage.engine.state.object_waits import ObjectWaits
from stowage.engine.state.permit_waits import PermitWaits
from stowage.engine.state.unconfirmed_bindings import UnconfirmedBindings
from stowage.framework import CycleState, Framework, ReservePlan
from stowage.framework.runtime.binding_run import StagedPreBind
from stowage.queue.queued_pod import QueuedPod
from stowage.state.devices.devices import ClaimAllocation
from stowage.state.pods.pod_info import PodInfo


class BindingPhase(Enum):
    """Where a pod is between assume and bound.

    ``stowage.engine.binding.state_machine`` draws the transitions. A pod is in the first three
    phases only while a call of ``Engine.schedule`` runs.
    """

    RESERVING = "reserving"
    PERMITTING = "permitting"
    PRE_FLIGHT = "pre-flight"
    WAITING_ON_PERMIT = "waiting on permit"
    PRE_BINDING = "pre-binding"
    WRITING = "writing objects"
    WAITING_FOR_OBJECTS = "waiting for objects"
    BINDING = "binding"


class LastSeen(Enum):
    """What the watches showed of a pod that is being bound."""

    PENDING = "pending"
    #: The watch of pending pods no longer shows it: it was bound, or deleted.
    NOT_PENDING = "not pending"
    #: The watch of assigned pods showed it bound and then deleted.
    DELETED = "deleted"


class BindingCycle(msgspec.Struct):
    """One pod on its way from assumed to bound.

    Attributes:
        queued: The pod as the queue returned it.
        info: The pod as last seen; the watch may have shown an update since.
        node_name: The node it is assumed on.
        framework: The profile that chose the node; it stays the same if the configuration changes.
        cycle_state: What the plugins noted in this cycle.
        extender: Binds the pod instead of the Bind plugins; None if no extender does.
        decision: Number of the attempt that chose the node.
        generation: The generation of the pod that was tried; `info` may be newer.
        left_node: Another node, to which the pod was nominated before; empty if there is none.
        phase: Where the pod is.
        last_seen: What the watches showed.
        permit_status: The status of Permit: Success, or Wait with the reasons.
        permit_timeouts: The timeouts of the Permit plugins that make the pod wait, in seconds.
        bind_plugin: The Bind plugin that binds the pod; empty before Bind.
        pre_binds: The PreBind plugins that have not run yet.
        pre_bind_plugin: The PreBind plugin that runs, or the first of several that the shell runs
            one after the other; empty before PreBind.
        reserve_plans: What the engine assumed for the pod, by plugin.
        written: Names of the volumes and claims that the shell has written.
        staged_pre_bind: The PreBind of volumes or claims in progress; None if none is.
        pre_bind_number: The number of the last PreBind instruction; 0 if there is none.
        claims_number: The number of the instruction that writes claims; 0 if there is none.
        has_created_claim: Whether a claim was created for it that has its devices.
        durations: Times PreBind and Bind; None before, and in a cycle that is not sampled.
    """

    queued: QueuedPod
    info: PodInfo
    node_name: str
    framework: Framework
    cycle_state: CycleState
    extender: BindingExtender | None = None
    decision: int = 0
    generation: int = 0
    left_node: str = ""
    phase: BindingPhase = BindingPhase.RESERVING
    last_seen: LastSeen = LastSeen.PENDING
    permit_status: Status = SUCCESS
    permit_timeouts: Mapping[str, float] | None = None
    bind_plugin: str = ""
    pre_binds: tuple[str, ...] = ()
    pre_bind_plugin: str = ""
    reserve_plans: Mapping[str, ReservePlan] = {}
    written: frozenset[str] = frozenset()
    staged_pre_bind: StagedPreBind | None = None
    pre_bind_number: int = 0
    claims_number: int = 0
    has_created_claim: bool = False
    durations: BindingDurations | None = None

    @property
    def allocations(self) -> Iterator[ClaimAllocation]:
        """The devices that are to be written to claims."""
        return (each for plan in self.reserve_plans.values() for each in plan.allocations)

    @property
    def allocated_claims(self) -> tuple[str, ...]:
        """UIDs of the claims that have devices in flight."""
        return tuple(each.claim_uid for each in self.allocations)

    @property
    def reference(self) -> PodReference:
        """The pod's reference."""
        return self.info.reference

    def see(self, last_seen: LastSeen) -> None:
        """Note what a watch showed; a deleted pod stays deleted."""
        if self.last_seen is not LastSeen.DELETED:
            self.last_seen = last_seen


class Bindings:
    """The binding cycles in progress by pod UID, and what their pods wait for.

    Attributes:
        permit_waits: Pods that wait for Permit plugins.
        object_waits: Pods that wait until their volumes are bound or their devices are ready.
        abandoned_writes: Ended cycles whose claims are still being written, by the number of the
            instruction. Their devices stay in flight until the shell reports.
        created_claims: Claims that were created and that the watch has not shown yet. Their devices
            are in flight, whether the cycle has ended or not.
        unconfirmed: Pods whose cycle has ended well and that the watch has not shown as bound.
    """

    def __init__(self) -> None:
        self._cycles: dict[str, BindingCycle] = {}
        self.permit_waits = PermitWaits()
        self.object_waits = ObjectWaits()
        self.abandoned_writes: dict[int, BindingCycle] = {}
        self.created_claims = CreatedClaims()
        self._numbers = count(1)
        self.unconfirmed = UnconfirmedBindings()

    def __len__(self) -> int:
        return len(self._cycles)

    def __contains__(self, uid: str) -> bool:
        return uid in self._cycles

    def __iter__(self) -> Iterator[BindingCycle]:
        return iter(self._cycles.values())

    @property
    def uids(self) -> Collection[str]:
        """The pods that are being bound."""
        return self._cycles.keys()

    def next_number(self) -> int:
        """A number for a PreBind instruction."""
        return next(self._numbers)

    def get(self, uid: str) -> BindingCycle | None:
        """The pod's binding cycle, if it has one."""
        return self._cycles.get(uid)

    def add(self, cycle: BindingCycle) -> None:
        """A pod has been assumed."""
        self._cycles[cycle.info.uid] = cycle

    def remove(self, uid: str) -> float | None:
        """A binding cycle ends, and its waits with it.

        Returns:
            When the pod began to wait for Permit; None if it did not wait.
        """
        self._cycles.pop(uid, None)
        self.object_waits.end(uid)
        return self.permit_waits.end(uid)

    def next_deadline(self) -> float | None:
        """When a wait times out, a deletion is tried again, or a binding is to be confirmed."""
        first = earlier(self.unconfirmed.next_deadline(), self.created_claims.next_deadline())
        if self._cycles:  # only pods that are being bound wait
            first = earlier(first, self.permit_waits.next_deadline())
            first = earlier(first, self.object_waits.next_deadline())
        return first

    def inconsistencies(self) -> Iterator[str]:
        """Inconsistencies; none if all is well."""
        for cycle in self:
            is_waiting = cycle.info.uid in self.permit_waits
            if is_waiting is not (cycle.phase is BindingPhase.WAITING_ON_PERMIT):
                expected = "no permit wait" if is_waiting else "a permit wait"
                yield f"pod {cycle.info.key} {cycle.phase.value}: expected {expected}"
        for uid in sorted(set(self.object_waits.uids()) - self._cycles.keys()):
            yield f"pod {uid} waits for objects and is not being bound"
        for pod in self.unconfirmed:
            if pod.uid in self._cycles:
                yield f"pod {pod.key} is bound and being bound"
