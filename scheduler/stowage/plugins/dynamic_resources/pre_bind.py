"""PreBind: the writes that give a pod its claims, and the wait until their devices are ready."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from stowage.api.cluster_events import EventResource
from stowage.api.events import ClaimsWritten
from stowage.api.instructions import (
    BindClaims,
    BindingConditionsAwaited,
    ClaimToBind,
    EmitEvent,
    ExtendedClaimToBind,
)
from stowage.api.objects.device import ResourceClaim
from stowage.api.status import SUCCESS, WAIT, error
from stowage.api.values.claim_writes import is_reserved_for
from stowage.framework import CycleState, PreBindProgress
from stowage.plugins.dynamic_resources.conditions import (
    Readiness,
    condition_state,
    has_binding_conditions,
    seconds_left,
)
from stowage.plugins.dynamic_resources.pod_devices import PodDevices
from stowage.state.devices.devices import Devices
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

_CLAIM = EventResource.RESOURCE_CLAIM

#: How a wait for binding conditions ends, as in the metrics.
SUCCEEDED, FAILED, TIMEOUT = "success", "failed", "timeout"


class Wait(msgspec.Struct, frozen=True):
    """The time that devices have to become ready.

    Attributes:
        timeout_s: The longest time after the allocation; None if binding conditions do not matter.
        now: Seconds since the epoch.
    """

    timeout_s: float | None
    now: float


def writes(
    found: PodDevices, pod: PodInfo, node_name: str, claims: Sequence[ResourceClaim]
) -> BindClaims:
    """Those of the pod's claims that are not reserved for it, with the allocations of Reserve."""
    reserved = {each.claim_uid: each.allocation for each in found.reserved}
    wanted = tuple(
        ClaimToBind(claim, reserved.get(claim.metadata.uid), filtered.status.allocation)
        for filtered, claim in zip(found.claims, claims, strict=True)
        if not is_reserved_for(claim, pod.uid)
    )
    extended = None
    if found.mappings is not None and found.extended_spec is not None:
        allocation = found.reserved[-1].allocation
        extended = ExtendedClaimToBind(found.extended_spec, allocation, found.mappings)
    return BindClaims(pod.reference, node_name, wanted, extended)


def note(found: PodDevices, outcome: ClaimsWritten) -> None:
    """Note the outcome of the writes; the claim for extended resources may have been created."""
    found.special = outcome.extended
    found.is_written = not outcome.error


def latest(found: PodDevices, devices: Devices) -> list[ResourceClaim]:
    """The claims that the pod was filtered with, as they are now; as they were if they are gone."""
    return [_now(each, devices) for each in found.claims]


def progress(
    state: CycleState, pod: PodInfo, node_name: str, snapshot: Snapshot, wait: Wait
) -> PreBindProgress:
    """Whether the watch shows the created claim, and all devices are ready."""
    found, devices = state.read(PodDevices), snapshot.devices
    awaited: set[tuple[EventResource, str]] = set()
    if found.special is not None and not devices.shows(found.special):
        # In an earlier version it has no allocation, so its devices would seem to be free.
        awaited.add((_CLAIM, found.special.metadata.namespaced_name))
    if wait.timeout_s is None:
        return PreBindProgress(WAIT, frozenset(awaited)) if awaited else PreBindProgress(SUCCESS)
    claims = list(_all(found, devices))
    if not found.has_announced_wait and any(map(has_binding_conditions, claims)):
        found.has_announced_wait = True
        found.waits_since = state.timer()
        state.instruct(_pending_event(pod, node_name))
    left: float | None = None
    for claim in claims if found.has_announced_wait else ():
        failure = _failure(claim, found, devices, wait.timeout_s, wait.now)
        if failure is not None:
            note_end(state, pod, devices, failure[0])
            return PreBindProgress(error(failure[1]))
        if condition_state(claim).readiness is not Readiness.READY:
            # As upstream, the claims after it do not end the wait, even if they failed.
            awaited.add((_CLAIM, claim.metadata.namespaced_name))
            left = seconds_left(claim, wait.timeout_s, wait.now)
            break
    if not awaited:
        note_end(state, pod, devices, SUCCEEDED)
        return PreBindProgress(SUCCESS)
    return PreBindProgress(WAIT, frozenset(awaited), left)


def note_end(state: CycleState, pod: PodInfo, devices: Devices, status: str) -> None:
    """Report the end of the wait for binding conditions, if there was one."""
    found = state.read(PodDevices)
    if found.waits_since is None:
        return
    drivers = {
        result.driver
        for claim in _all(found, devices)
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
        if result.binding_conditions
    }
    waited_s, found.waits_since = state.timer() - found.waits_since, None
    names = tuple(sorted(drivers))
    state.instruct(
        BindingConditionsAwaited(pod.reference, pod.scheduler_name, names, status, waited_s)
    )


def timeout_text(found: PodDevices, snapshot: Snapshot) -> str:
    """The text of the error if the devices of a claim did not become ready in time."""
    for claim in _all(found, snapshot.devices):
        if condition_state(claim).readiness is not Readiness.READY:
            return f"device binding timeout: claim={claim.metadata.name}"
    return "the claim for extended resources was created, but the watch did not show it in time"


def _failure(
    claim: ResourceClaim, found: PodDevices, devices: Devices, timeout_s: float, now: float
) -> tuple[str, str] | None:
    """How the wait ends, and the error, if the devices of a claim will not become ready."""
    if claim is not found.special and _known(claim, devices) is None:
        return FAILED, f'could not find ResourceClaim "{claim.metadata.namespaced_name}"'
    state, name = condition_state(claim), claim.metadata.name
    if state.readiness is Readiness.FAILED:
        why = f'reason={state.reason}, message="{state.message}"'
        return FAILED, f"device binding failed: claim={name}, {why}"
    left = None if state.readiness is Readiness.READY else seconds_left(claim, timeout_s, now)
    if left is not None and left < 0:
        return TIMEOUT, f"device binding timeout: claim={name}"
    return None


def _all(found: PodDevices, devices: Devices) -> Iterator[ResourceClaim]:
    yield from latest(found, devices)
    if found.special is not None:
        yield _now(found.special, devices)


def _now(claim: ResourceClaim, devices: Devices) -> ResourceClaim:
    return _known(claim, devices) or claim


def _known(claim: ResourceClaim, devices: Devices) -> ResourceClaim | None:
    known = devices.claims.get(claim.metadata.namespaced_name)
    return known if known is not None and known.metadata.uid == claim.metadata.uid else None


def _pending_event(pod: PodInfo, node_name: str) -> EmitEvent:
    return EmitEvent(
        pod=pod.reference,
        event_type="Normal",
        reason="BindingConditionsPending",
        action="Scheduling",
        note=f"waiting for binding conditions for device on node {node_name}",
        scheduler_name=pod.scheduler_name,
        resource_version=pod.resource_version,
    )
