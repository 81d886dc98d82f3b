"""Devices that are free again because the attempt that reserved them has failed.

kube-scheduler has no event for it: a pod that found these devices in use, or its shared claim in
flight, waits for the flush of unschedulable pods after five minutes. Here it is as if the claims
had been deallocated.
"""

from __future__ import annotations

from msgspec.structs import replace

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.api.objects.device import ResourceClaim
from stowage.engine.state.bindings import BindingCycle
from stowage.engine.state.engine_state import EngineState

CLAIM_UPDATE = ClusterEvent(EventResource.RESOURCE_CLAIM, ActionType.UPDATE)
_NO_CLAIM = ResourceClaim()


def end_reservations(state: EngineState, cycle: BindingCycle) -> None:
    """Free the devices that a pod has reserved, unless its claims or its companions have them."""
    state.cache.give_up_allocations(cycle.allocated_claims, cycle.info.uid)


def move_pods_to_freed_devices(state: EngineState, cycle: BindingCycle, now: float) -> None:
    """Requeue the pods that the devices of an ended reservation may help."""
    claims = state.cache.snapshot().devices.claims
    for plan in cycle.reserve_plans.values():
        for each in plan.allocations:
            if each.is_new and cycle.has_created_claim:
                continue  # its devices are free when that claim is gone
            # The claim for extended resources may not exist.
            claim = claims.get(each.claim) or _NO_CLAIM
            if claim.status.allocation is None:
                before = replace(claim, status=replace(claim.status, allocation=each.allocation))
                state.queue.move_on_event(CLAIM_UPDATE, before, claim, now)
