"""Devices of claims that were created for extended resources, from creation to the watch's word.

The devices are in flight under the claim's UID from the answer of the API server until

    the watch shows the claim as it was answered, or later:  the state counts its devices
    the watch shows that the claim is gone                    |
    its deletion has ended: the claim does not exist          +- the devices are free

A deletion that has failed is tried again after a while, because a claim that somebody else has
deleted within a gap of the watch is never shown. kube-scheduler frees the devices before it deletes
the claim, so that another pod may get them although the claim still has them.
"""

from __future__ import annotations

from msgspec.structs import replace

from stowage.api.events import ClaimDeletionFinished
from stowage.api.objects.device import ResourceClaim
from stowage.engine.binding.freed_devices import CLAIM_UPDATE
from stowage.engine.state.bindings import BindingCycle
from stowage.engine.state.created_claims import DELETE_AGAIN_AFTER_S, CreatedClaim
from stowage.engine.state.engine_state import EngineState
from stowage.state.devices.devices import ClaimAllocation


def hold_created_claim(state: EngineState, cycle: BindingCycle, claim: ResourceClaim) -> None:
    """Keep the devices of a created claim in flight under its UID, unless the watch shows it."""
    allocation, metadata = claim.status.allocation, claim.metadata
    if allocation is None:
        return
    cycle.has_created_claim = True
    if state.cache.snapshot().devices.shows(claim):
        return
    held = ClaimAllocation(metadata.uid, metadata.namespaced_name, allocation)
    state.cache.begin_allocations((held,), cycle.info.uid)
    state.cache.end_allocations(each.claim_uid for each in cycle.allocations if each.is_new)
    state.bindings.created_claims.add(claim, cycle.reference)


def created_claim_seen(state: EngineState, key: str, now: float) -> None:
    """A claim was added or updated: if it was created here, its devices are counted from now on."""
    created = state.bindings.created_claims.by_key.get(key)
    if created is not None and state.cache.snapshot().devices.shows(created.claim):
        _end_hold(state, created, now)


def created_claim_gone(state: EngineState, key: str, now: float) -> None:
    """A claim was deleted: if it was created here, its devices are free."""
    created = state.bindings.created_claims.by_key.get(key)
    if created is not None:
        _end_hold(state, created, now)


def claim_deletion_finished(state: EngineState, event: ClaimDeletionFinished, now: float) -> None:
    """The shell has deleted a claim, or failed to."""
    created = state.bindings.created_claims.by_key.get(event.claim.key)
    if created is None or created.claim.metadata.uid != event.claim.uid:
        return
    if event.error:
        created.delete_at = now + DELETE_AGAIN_AFTER_S
    else:
        _end_hold(state, created, now)


def _end_hold(state: EngineState, created: CreatedClaim, now: float) -> None:
    claim = created.claim
    key = claim.metadata.namespaced_name
    state.bindings.created_claims.remove(key)
    state.cache.end_allocations((claim.metadata.uid,))
    known = state.cache.snapshot().devices.claims.get(key)
    if known is None or known.status.allocation is None:
        free = replace(claim, status=replace(claim.status, allocation=None))
        state.queue.move_on_event(CLAIM_UPDATE, claim, free, now)
