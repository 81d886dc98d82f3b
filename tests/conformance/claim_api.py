"""The API server of the recorded cases with claims: it carries out the scheduler's writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from stowage.api.events import ClaimsWritten
from stowage.api.instructions import (
    BindClaims,
    ClaimReference,
    ClaimToBind,
    DeallocateClaim,
    DeleteClaim,
    Instruction,
    PodReference,
    ReleaseClaims,
)
from stowage.api.objects.device import AllocatedDeviceStatus, ResourceClaim
from stowage.api.objects.meta import Condition
from stowage.api.values import claim_writes

NOW = "2026-01-01T00:00:00Z"
_MAX_CONSUMERS = 256


class Refused(Exception):  # noqa: N818 - it names the finding
    """The API server refuses a write."""


class ClaimApi:
    """Resource claims as the API server has them.

    Args:
        options: The options of the case.

    Attributes:
        claims: By ``namespace/name``.
        writes: The writes since they were last taken, as recorded.
        pod_statuses: Pod -> ``status.extendedResourceClaimStatus``.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.claims: dict[str, ResourceClaim] = {}
        self.writes: list[str] = []
        self.pod_statuses: dict[str, Any] = {}
        self._refused_once = set(options.get("failStatusUpdate", ()))
        self._conditions = options.get("bindingConditions", "")
        self._has_failed = False
        self._version = 1000
        self._created = 0

    def put(self, claim: ResourceClaim) -> ResourceClaim:
        """Store a claim in a new version."""
        self._version += 1
        meta = replace(claim.metadata, resource_version=str(self._version))
        stored = replace(claim, metadata=meta)
        self.claims[meta.namespaced_name] = stored
        return stored

    def carry_out(self, instructions: Iterable[Instruction]) -> None:
        """Carry out instructions that are not answered."""
        for instruction in instructions:
            if isinstance(instruction, ReleaseClaims):
                for reference in instruction.claims:
                    self._release(reference, instruction.pod)
            elif isinstance(instruction, DeallocateClaim):
                key = instruction.claim.key
                self.writes.append(f"update resourceclaims/status {key}")
                self.put(claim_writes.deallocated(self.claims[key]))
            elif isinstance(instruction, DeleteClaim):
                key = instruction.claim.key
                self.writes += [f"update resourceclaims {key}", f"delete resourceclaims {key}"]
                del self.claims[key]

    def bind(self, instruction: BindClaims) -> ClaimsWritten:
        """Write the claims of a pod."""
        written: list[ResourceClaim] = []
        created: ResourceClaim | None = None
        failure, pod = "", instruction.pod
        try:
            for wanted in instruction.claims:
                written.append(self._bind(wanted, pod))  # noqa: PERF401 - one may be refused
            if instruction.extended is not None:
                created = self._create(instruction)
                wanted = ClaimToBind(created, instruction.extended.allocation)
                created = self._bind(wanted, pod)
                if not instruction.extended.mappings:
                    text = "nil or empty request mappings, no update of pod"
                    raise Refused(f"{text} {pod.key} ExtendedResourceClaimStatus")
                self.writes.append(f"patch pods/status {pod.key}")
                status = claim_writes.extended_claim_status(created, instruction.extended)
                self.pod_statuses[pod.key] = msgspec.json.decode(msgspec.json.encode(status))
        except (Refused, claim_writes.ClaimUnusable) as problem:
            failure = str(problem)
        return ClaimsWritten(pod.uid, instruction.number, tuple(written), created, failure)

    def _create(self, instruction: BindClaims) -> ResourceClaim:
        assert instruction.extended is not None
        pod = instruction.pod
        prefix = claim_writes.extended_claim_prefix(pod)
        self.writes.append(f"create resourceclaims {pod.namespace}/{prefix}*")
        name, self._created = f"{prefix}{self._created}", self._created + 1
        claim = claim_writes.extended_claim(pod, instruction.extended)
        meta = replace(claim.metadata, name=name, uid=f"uid-claim-{name}")
        return self.put(replace(claim, metadata=meta))

    def _bind(self, wanted: ClaimToBind, pod: PodReference) -> ResourceClaim:
        key = wanted.claim.metadata.namespaced_name
        claim = self.claims[key]
        claim_writes.check_usable(claim, wanted)
        if wanted.allocation is not None and not claim_writes.has_finalizer(claim):
            self.writes.append(f"update resourceclaims {key}")
            claim = self.put(claim_writes.with_finalizer(claim))
        doing = "add reservation" if wanted.allocation is None else "add allocation and reservation"
        self.writes.append(f"update resourceclaims/status {key}")
        try:
            return self._update_status(
                claim, claim_writes.with_reservation(claim, wanted, pod, NOW)
            )
        except Refused as refusal:
            raise Refused(f"{doing} to claim {key}: {refusal}") from refusal

    def _update_status(self, old: ResourceClaim, new: ResourceClaim) -> ResourceClaim:
        key, name = old.metadata.namespaced_name, old.metadata.name
        if key in self._refused_once:
            self._refused_once.discard(key)
            raise Refused("Internal error occurred: refused")
        invalid = f'ResourceClaim.resource.k8s.io "{name}" is invalid'
        if len(new.status.reserved_for) > _MAX_CONSUMERS:
            number = len(new.status.reserved_for)
            text = f"Too many: {number}: must have at most {_MAX_CONSUMERS} items"
            raise Refused(f"{invalid}: status.reservedFor: {text}")
        if old.status.allocation is not None and old.status.allocation != new.status.allocation:
            raise Refused(f"{invalid}: status.allocation: field is immutable")
        return self._drive(self.put(new))

    def _drive(self, claim: ResourceClaim) -> ResourceClaim:
        """Let the driver report the binding conditions of the claim's devices."""
        allocation = claim.status.allocation
        if allocation is None or claim.status.devices or not self._conditions:
            return claim
        fails = self._conditions == "Failed" and not self._has_failed
        devices = [
            AllocatedDeviceStatus(
                each.driver,
                each.pool,
                each.device,
                conditions=tuple(
                    Condition(name, "True", "Test", "set by the test")
                    for name in (
                        each.binding_failure_conditions if fails else each.binding_conditions
                    )
                ),
            )
            for each in allocation.devices.results
            if each.binding_conditions
        ]
        # The driver counts the first claim that is reserved, whether or not it has conditions.
        self._has_failed |= fails
        if not devices:
            return claim
        self.put(replace(claim, status=replace(claim.status, devices=tuple(devices))))
        return claim

    def _release(self, reference: ClaimReference, pod: PodReference) -> None:
        self.writes.append(f"patch resourceclaims/status {reference.key}")
        self.put(claim_writes.without_consumer(self.claims[reference.key], pod.uid))

    def take_writes(self) -> list[str]:
        """The writes since the last call."""
        taken, self.writes = self.writes, []
        return taken


def claim_record(claim: ResourceClaim) -> dict[str, Any]:
    """A claim as recorded."""
    plain = msgspec.json.decode(msgspec.json.encode(claim))
    status, meta = plain.get("status", {}), plain["metadata"]
    record: dict[str, Any] = {}
    allocation = status.get("allocation")
    if allocation is not None:
        if allocation.pop("allocationTimestamp", None):
            record["allocationTimestamp"] = True
        for result in allocation.get("devices", {}).get("results", ()):
            if "shareID" in result:
                result["shareID"] = "*"
        record["allocation"] = allocation
    _put_consumers(record, status.get("reservedFor"))
    if meta.get("finalizers"):
        record["finalizers"] = meta["finalizers"]
    if status.get("devices"):
        record["deviceConditions"] = len(status["devices"])
    if meta.get("annotations", {}).get(claim_writes.EXTENDED_RESOURCE_CLAIM):
        record["spec"] = plain["spec"]
        record["metadata"] = {
            "annotations": meta["annotations"],
            "ownerReferences": meta["ownerReferences"],
        }
    return record


def _put_consumers(record: dict[str, Any], consumers: list[Any] | None) -> None:
    if consumers and len(consumers) > 20:
        record["reservedForCount"] = len(consumers)
        record["reservedForLast"] = consumers[-1]
    elif consumers:
        record["reservedFor"] = consumers
