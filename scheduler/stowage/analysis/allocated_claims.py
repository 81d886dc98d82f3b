"""What the API server, the drivers and the claim controller make of decisions about claims.

All functions change the objects at once and return the events of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec.structs import replace

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.api.events import (
    ClaimDeletionFinished,
    ClaimsWritten,
    DeviceObjectGone,
    DeviceObjectSeen,
    Event,
)
from stowage.api.instructions import (
    BindClaims,
    ClaimReference,
    ClaimToBind,
    ExtendedClaimToBind,
    PodReference,
)
from stowage.api.objects.device import AllocatedDeviceStatus, ResourceClaim
from stowage.api.objects.meta import Condition
from stowage.api.objects.pod import Pod
from stowage.api.values import claim_writes
from stowage.api.values.claim_writes import ClaimUnusable


def write_claims(instruction: BindClaims, objects: ClusterObjects, unix_s: float) -> list[Event]:
    """Allocate the claims and reserve them for the pod; their devices are ready at once.

    Args:
        instruction: The claims and the pod.
        objects: The cluster.
        unix_s: The time of the allocation, in seconds since 1970.
    """
    now = datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    pod, written, created, error = instruction.pod, [], None, ""
    try:
        for wanted in instruction.claims:
            written.append(_bind(wanted, pod, objects, now))  # noqa: PERF401 - may fail
    except ClaimUnusable as unusable:
        error = str(unusable)
    if instruction.extended is not None and not error:
        created = _create(instruction.extended, pod, objects, now)
    seen = [*written, created] if created else written
    answer = ClaimsWritten(pod.uid, instruction.number, tuple(written), created, error)
    return [answer, *map(DeviceObjectSeen, seen)]


def release_claims(
    pod_uid: str, claims: tuple[ClaimReference, ...], objects: ClusterObjects
) -> list[Event]:
    """Remove a pod from the consumers of claims."""
    return [event for each in claims for event in _release(each.key, pod_uid, objects)]


def deallocate_claim(key: str, objects: ClusterObjects) -> list[Event]:
    """Clear the allocation of a claim."""
    claim = objects.find(ResourceClaim, key)
    return [] if claim is None else [_put(claim_writes.deallocated(claim), objects)]


def delete_claim(reference: ClaimReference, objects: ClusterObjects) -> list[Event]:
    """Delete a claim."""
    claims = objects.by_kind.get(ResourceClaim.__name__, {})
    finished = ClaimDeletionFinished(reference)
    if claims.pop(reference.key, None) is None:
        return [finished]
    gone = DeviceObjectGone(ResourceClaim.__name__, reference.namespace, reference.name)
    return [finished, gone]


def free_claims(pod: Pod, objects: ClusterObjects) -> list[Event]:
    """Release the claims of a deleted pod; a claim without consumers loses its devices.

    The claims that were made for the pod stay: without devices they change nothing.
    """
    events: list[Event] = []
    for key in _claim_keys(pod):
        events += _release(key, pod.metadata.uid, objects)
        claim = objects.find(ResourceClaim, key)
        if claim is not None and claim.status.allocation and not claim.status.reserved_for:
            bare = claim_writes.deallocated(claim_writes.without_finalizer(claim))
            events.append(_put(bare, objects))
    return events


def hand_over_claims(pod: Pod, successor_uid: str, objects: ClusterObjects) -> list[Event]:
    """Give the claims that were made for a pod to the pod that takes its place."""
    events: list[Event] = []
    for status in pod.status.resource_claim_statuses:
        key = f"{pod.metadata.namespace}/{status.resource_claim_name}"
        claim = objects.find(ResourceClaim, key)
        if claim is not None:
            owners = tuple(
                replace(each, uid=successor_uid) if each.uid == pod.metadata.uid else each
                for each in claim.metadata.owner_references
            )
            metadata = replace(claim.metadata, owner_references=owners)
            events.append(_put(replace(claim, metadata=metadata), objects))
    return events


def _bind(
    wanted: ClaimToBind, pod: PodReference, objects: ClusterObjects, now: str
) -> ResourceClaim:
    key = wanted.claim.metadata.namespaced_name
    claim = objects.find(ResourceClaim, key)
    if claim is None:
        raise ClaimUnusable(f"claim {key} got deleted in the meantime")
    if claim_writes.is_reserved_for(claim, pod.uid):
        return claim
    claim_writes.check_usable(claim, wanted)
    if wanted.allocation is not None and not claim_writes.has_finalizer(claim):
        claim = claim_writes.with_finalizer(claim)
    reserved = claim_writes.with_reservation(claim, wanted, pod, now)
    return _put(_with_ready_devices(reserved), objects).object  # type: ignore[return-value]  # a claim


def _create(
    wanted: ExtendedClaimToBind, pod: PodReference, objects: ClusterObjects, now: str
) -> ResourceClaim:
    claim = claim_writes.extended_claim(pod, wanted)
    name = claim_writes.extended_claim_prefix(pod) + pod.uid
    claim = replace(claim, metadata=replace(claim.metadata, name=name, uid=name))
    objects.add(claim)
    claim = _bind(ClaimToBind(claim, wanted.allocation), pod, objects, now)
    stored = objects.pod(pod.key)
    if stored is not None:
        named = claim_writes.extended_claim_status(claim, wanted)
        status = replace(stored.status, extended_resource_claim_status=named)
        objects.add(replace(stored, status=status))
    return claim


def _with_ready_devices(claim: ResourceClaim) -> ResourceClaim:
    allocation = claim.status.allocation
    results = () if allocation is None else allocation.devices.results
    ready = tuple(
        AllocatedDeviceStatus(
            each.driver,
            each.pool,
            each.device,
            conditions=tuple(Condition(name, "True") for name in each.binding_conditions),
        )
        for each in results
        if each.binding_conditions
    )
    return replace(claim, status=replace(claim.status, devices=ready or claim.status.devices))


def _release(key: str, pod_uid: str, objects: ClusterObjects) -> list[Event]:
    claim = objects.find(ResourceClaim, key)
    if claim is None or not claim_writes.is_reserved_for(claim, pod_uid):
        return []
    return [_put(claim_writes.without_consumer(claim, pod_uid), objects)]


def _put(claim: ResourceClaim, objects: ClusterObjects) -> DeviceObjectSeen:
    """Store a claim in its next version."""
    version = claim.metadata.resource_version
    following = str(int(version) + 1) if version.isdecimal() else "1"
    stored = replace(claim, metadata=replace(claim.metadata, resource_version=following))
    objects.add(stored)
    return DeviceObjectSeen(stored)


def _claim_keys(pod: Pod) -> Iterator[str]:
    names = [each.resource_claim_name for each in pod.spec.resource_claims]
    names += [each.resource_claim_name for each in pod.status.resource_claim_statuses]
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        names.append(extended.resource_claim_name)
    return (f"{pod.metadata.namespace}/{name}" for name in names if name)
