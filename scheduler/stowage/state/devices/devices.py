"""Claims, classes and slices, and which devices are allocated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec
import numpy as np

from stowage.api.decoding.errors import QUANTITY_EXPECTATION, InvalidObject, QuantityError
from stowage.api.objects.device import (
    AllocationResult,
    DeviceClass,
    DeviceObject,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceSlice,
)
from stowage.api.objects.meta import controller_of
from stowage.api.values.claim_writes import EXTENDED_RESOURCE_CLAIM
from stowage.api.values.device_capacity import amount
from stowage.state.changes import is_older
from stowage.state.devices.allocations import AllocatedDevices
from stowage.state.devices.class_devices import ClassDevices, count_devices
from stowage.state.devices.classes import DeviceClasses
from stowage.state.devices.device_info import SliceInfo
from stowage.state.devices.features import ALL_FEATURES, DeviceFeatures
from stowage.state.devices.releases import Releases
from stowage.state.devices.selection import Selectors
from stowage.state.devices.slices import DeviceSlices
from stowage.state.nodes.node_columns import NodeColumns
from stowage.state.storage.assume_cache import AssumeCache

_NOTHING: Mapping[str, None] = {}


class ClaimAllocation(msgspec.Struct, frozen=True):
    """Devices that a pod reserves for a claim until the claim is written.

    Attributes:
        claim_uid: The UID of the claim; one made up for a claim that does not exist yet.
        claim: ``namespace/name``, for messages.
        allocation: The devices.
        is_new: Whether the claim is to be created.
    """

    claim_uid: str
    claim: str
    allocation: AllocationResult
    is_new: bool = False


class Devices:
    """Everything about dynamic resource allocation.

    Attributes:
        claims: By ``namespace/name``; what the scheduler has written lies over what the watch
            showed.
        classes: The device classes.
        slices: The slices, and their devices as columns.
        allocated: The allocated devices: those of `claims`, and those in flight.
        in_flight: Claim UID -> the allocation that is to be written. Members of a pod group may
            hold one together.
        selectors: CEL expressions.
        releases: Reservations that were given back. They outlive a change of the configuration,
            which makes new plugins.
    """

    def __init__(self, nodes: NodeColumns, features: DeviceFeatures = ALL_FEATURES) -> None:
        self._nodes = nodes
        may_share = features.consumable_capacity
        self.claims: AssumeCache[ResourceClaim] = AssumeCache(self._claim_changed)
        self.classes = DeviceClasses(self._served_changed, may_serve=features.extended_resources)
        self.slices = DeviceSlices(nodes, features)
        self.allocated = AllocatedDevices(self.slices.use_changed, may_share=may_share)
        self.in_flight: dict[str, ClaimAllocation] = {}
        self._holders: dict[str, set[str]] = {}
        # Those of `in_flight` that `claims` show: they count once, or shares would seem used up.
        self._shown: set[str] = set()
        self.selectors = Selectors()
        self.releases = Releases()
        self._special: dict[str, dict[str, None]] = {}

    def put(self, obj: DeviceObject) -> tuple[object | None, bool]:
        """Store an object; (the one known before, whether this one is newer).

        Raises:
            InvalidObject: A quantity cannot be parsed; the known version stays.
        """
        if isinstance(obj, ResourceSlice):
            return self._put_slice(obj)
        if isinstance(obj, DeviceClass):
            return self.classes.put(obj)
        _check_quantities(obj)
        return self.claims.put(obj)

    def drop(self, kind: type[DeviceObject], key: str) -> object | None:
        """Remove a deleted object; None if it is unknown."""
        if kind is ResourceClaim:
            return self.claims.drop(key)
        if kind is DeviceClass:
            return self.classes.drop(key)
        return self.slices.drop(key)

    def begin(self, reserved: ClaimAllocation, pod_uid: str) -> None:
        """Count an allocation that is to be written for a pod."""
        claim_uid, known = reserved.claim_uid, self.in_flight.get(reserved.claim_uid)
        if known is not None and known.allocation == reserved.allocation:
            self._holders[claim_uid].add(pod_uid)
            return
        self.end(claim_uid)
        self.in_flight[claim_uid] = reserved
        self._holders[claim_uid] = {pod_uid}
        self.allocated.add(reserved.allocation.devices.results)
        self._count_once(reserved, self.claims.get(reserved.claim))

    def give_up(self, claim_uid: str, pod_uid: str) -> None:
        """Stop to count an allocation for a pod; it ends if it is in flight for no other pod."""
        holders = self._holders.get(claim_uid, set())
        holders.discard(pod_uid)
        if not holders:
            self.end(claim_uid)

    def end(self, claim_uid: str) -> None:
        """Stop to count an allocation as in flight: it was written, or given up by all pods."""
        self._holders.pop(claim_uid, None)
        reserved = self.in_flight.pop(claim_uid, None)
        if claim_uid in self._shown:
            self._shown.remove(claim_uid)
        elif reserved is not None:
            self.allocated.remove(reserved.allocation.devices.results)

    def assume(self, claim: ResourceClaim) -> None:
        """Take a claim as the API server returned it, until the watch shows it or a newer one.

        A claim that the watch has not shown, or has shown in a newer version, stays as it is.
        """
        known = self.claims.get(claim.metadata.namespaced_name)
        if known is None or known.metadata.uid != claim.metadata.uid:
            return
        if not is_older(claim.metadata.resource_version, known.metadata.resource_version):
            self.claims.assume(claim, "")

    def shows(self, claim: ResourceClaim) -> bool:
        """Whether a claim is known in this version or a later one."""
        known = self.claims.get(claim.metadata.namespaced_name)
        if known is None or known.metadata.uid != claim.metadata.uid:
            return False
        return not is_older(known.metadata.resource_version, claim.metadata.resource_version)

    def special_claim(self, pod_uid: str, pod_name: str) -> ResourceClaim | None:
        """The claim that exists for the extended resources of a pod."""
        for key in self._special.get(pod_uid, _NOTHING):
            claim = self.claims.get(key)
            owner = None if claim is None else controller_of(claim.metadata)
            if owner is not None and owner.name == pod_name:
                return claim
        return None

    def serves(self, requests: Mapping[str, int]) -> bool:
        """Whether a class serves one of the requested resources."""
        if not self.classes.serves_any:
            return False
        return any(
            amount and self.classes.serving(name) is not None for name, amount in requests.items()
        )

    def of_class(self, name: str) -> ClassDevices:
        """The devices that a class selects on each node, whatever their pools are like."""
        device_class = self.classes.get(name)
        if device_class is None:
            nothing = np.zeros(self._nodes.num_rows, dtype=np.int64)
            return ClassDevices(nothing, nothing)
        return count_devices(device_class, self.slices, self.allocated, self.selectors)

    def allocations(self) -> Iterator[tuple[str, DeviceRequestAllocationResult]]:
        """(claim UID, device) of every claim, in flight or not, each claim once."""
        for claim in self.claims:
            if claim.status.allocation is not None:
                for result in claim.status.allocation.devices.results:
                    yield claim.metadata.uid, result
        known = {claim.metadata.uid for claim in self.claims if claim.status.allocation is not None}
        for uid, reserved in self.in_flight.items():
            # The claim for extended resources has another UID once it exists.
            if uid not in known and uid.partition("/")[0] not in self._special:
                for result in reserved.allocation.devices.results:
                    yield uid, result

    def _put_slice(self, obj: ResourceSlice) -> tuple[SliceInfo | None, bool]:
        old, is_news = self.slices.put(obj)
        info = self.slices.get(obj.metadata.name) if is_news else None
        if info is not None:
            for device in info.devices:
                columns = self.slices.columns
                columns.in_use[device.row] = device.id in self.allocated.whole
                columns.has_shares[device.row] = device.id in self.allocated.shares
        return old, is_news

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        before, after = _results(old), _results(new)
        if before != after:
            # Add before remove: a device that stays allocated is not free in between.
            self.allocated.add(after)
            for claim in (old, new):
                reserved = None if claim is None else self.in_flight.get(claim.metadata.uid)
                if reserved is not None:
                    self._count_once(reserved, new)
            self.allocated.remove(before)
        self._index_special(old, new)

    def _count_once(self, reserved: ClaimAllocation, claim: ResourceClaim | None) -> None:
        """Count an allocation in flight, or not if `claim` is its claim and shows it already."""
        uid, results = reserved.claim_uid, reserved.allocation.devices.results
        is_shown = claim is not None and claim.metadata.uid == uid and _results(claim) == results
        if is_shown and uid not in self._shown:
            self._shown.add(uid)
            self.allocated.remove(results)
        elif not is_shown and uid in self._shown:
            self._shown.remove(uid)
            self.allocated.add(results)

    def _index_special(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        for claim, is_there in ((old, False), (new, True)):
            if claim is None or not claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM):
                continue
            owner = controller_of(claim.metadata)
            key = claim.metadata.namespaced_name
            if owner is None or claim.metadata.annotations[EXTENDED_RESOURCE_CLAIM] != "true":
                continue
            claims = self._special.setdefault(owner.uid, {})
            if is_there:
                claims[key] = None
            else:
                claims.pop(key, None)
            if not claims:
                del self._special[owner.uid]

    def _served_changed(self) -> None:
        """Plugins have kept answers about nodes that depend on which class serves a resource."""
        self._nodes.node_changes.forget()
        self._nodes.usage_changes.forget()
        self.slices.changes.forget()
        self.slices.serves_resources = self.classes.serves_any


def _results(claim: ResourceClaim | None) -> tuple[DeviceRequestAllocationResult, ...]:
    if claim is None or claim.status.allocation is None:
        return ()
    return claim.status.allocation.devices.results


def _check_quantities(claim: ResourceClaim) -> None:
    try:
        for result in _results(claim):
            for text in result.consumed_capacity.values():
                amount(text)
        for request in claim.spec.devices.requests:
            for each in (request.exactly, *request.first_available):
                if each is not None and each.capacity is not None:
                    for text in each.capacity.requests.values():
                        amount(text)
    except QuantityError as error:
        meta, field = claim.metadata, "spec.devices.requests or status.allocation"
        raise InvalidObject(
            "ResourceClaim",
            meta.namespaced_name,
            field,
            str(error.text),
            QUANTITY_EXPECTATION,
            meta.uid,
        ) from error


def device_kind(name: str) -> type[DeviceObject]:
    """The kind of that name.

    Raises:
        KeyError: There is no such kind.
    """
    return cast("type[DeviceObject]", _KINDS[name])


_KINDS: Mapping[str, type[Any]] = {
    kind.__name__: kind for kind in (ResourceClaim, DeviceClass, ResourceSlice)
}
