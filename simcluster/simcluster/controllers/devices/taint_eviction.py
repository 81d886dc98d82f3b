"""Eviction of pods that use devices with NoExecute taints.

kube-controller-manager's ``device-taint-eviction`` (v1.36), without DeviceTaintRules.
"""

from collections.abc import Iterator

from simcluster.clock import parse_timestamp
from simcluster.controllers.devices.references import (
    device_claim_name,
    device_claims_of,
    is_reserved_for,
    uses_device_claims,
)
from simcluster.controllers.indexes import KeyedIndex
from simcluster.controllers.ownership import disruption_target, is_finished
from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.kinds.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from simcluster.store.store import Change, Stored
from simcluster.values import Json
from stowage.api import Taint, Toleration
from stowage.api.decoding.decode import convert_object
from stowage.api.values.tolerations import NO_EXECUTE, tolerates

Pool = tuple[str, str]
"""Driver and name of a pool."""
Device = tuple[str, str, str]
"""Driver, pool and name of a device."""

_SOURCE = "device-taint-eviction"


class DeviceTaintEvictionController(Reconciler):
    """Deletes the pods of claims with tainted devices, as the claims' tolerations allow.

    As in Kubernetes, only tolerations count whose effect is NoExecute, and pods whose claim was
    made for extended resources stay. Keys name claims.
    """

    def follow(self) -> None:
        """Follow claims, slices, and pods that get a node."""
        self._claims: KeyedIndex[Pool] = KeyedIndex(_pools_of_claim)
        self._slices: KeyedIndex[Pool] = KeyedIndex(_pool_of_slice)
        self._tainted: KeyedIndex[Device] = KeyedIndex(_tainted_devices)
        for claim in self.store.collection(RESOURCE_CLAIMS.stored_in):
            self._claims.add(claim)
        for found in self.store.collection(RESOURCE_SLICES.stored_in):
            self._slices.add(found)
            self._tainted.add(found)
        self.subscribe(RESOURCE_CLAIMS, self._on_claim)
        self.subscribe(RESOURCE_SLICES, self._on_slice)
        self.shared.pods_by_node.on_change(self._on_pod)
        self.enqueue_all(RESOURCE_CLAIMS)

    def _on_claim(self, change: Change) -> None:
        self._claims.see(change)
        self.enqueue(key_of(change))

    def _on_slice(self, change: Change) -> None:
        self._slices.see(change)
        self._tainted.see(change)
        states = (change.previous, change.current)
        if any(found is not None and _tainted_devices(found) for found in states):
            for pool in _pool_of_slice(change.current):
                for claim in self._claims.of(pool):
                    self.enqueue(Key(claim.namespace, claim.name))

    def _on_pod(self, change: Change) -> None:
        pod, before = change.current, change.previous
        was_bound = before is not None and before.spec.get("nodeName")
        if change.type != "DELETED" and not was_bound and uses_device_claims(pod):
            for name in device_claims_of(pod.obj):
                self.enqueue(Key(pod.namespace, name))

    def reconcile(self, key: Key) -> None:
        """Delete the pods of a claim that must go now, or reconcile again when they must."""
        claim = self.find(RESOURCE_CLAIMS, *key)
        times = () if claim is None else self._eviction_times(claim)
        at = min(times, default=None)
        self.forget_timer(key)
        if claim is None or at is None:
            return
        left_s = at - self.registry.clock.time_s()
        if left_s > 0:
            self.enqueue_after(key, left_s)
            return
        for consumer in claim.status.get("reservedFor") or ():
            pod = self.find(PODS, key.namespace, consumer["name"])
            if pod is not None and _must_go(pod, claim):
                self._evict(pod)

    def _eviction_times(self, claim: Stored) -> Iterator[float]:
        """Seconds since the epoch at which each taint of a claim's devices ends its pods."""
        for result in _results(claim):
            tolerations = [
                convert_object(Toleration, found)
                for found in result.get("tolerations") or ()
                if found.get("effect") == NO_EXECUTE
            ]
            for taint in self._taints(result):
                since = parse_timestamp(taint.time_added) if taint.time_added else 0.0
                matching = [found for found in tolerations if tolerates(found, taint)]
                limits = [
                    max(0, found.toleration_seconds)
                    for found in matching
                    if found.toleration_seconds is not None
                ]
                if len(limits) == len(matching):
                    yield since + min(limits, default=0)

    def _taints(self, result: Json) -> list[Taint]:
        """The NoExecute taints of an allocated device, by the newest slices of its pool."""
        driver, pool, name = result["driver"], result["pool"], result["device"]
        tainted = self._tainted.of((driver, pool, name))
        if not tainted:
            return []
        newest = max(_generation(found) for found in self._slices.of((driver, pool)))
        return [
            taint
            for found in tainted
            if _generation(found) == newest
            for device in found.spec["devices"]
            if device["name"] == name
            for taint in _taints_of(device)
        ]

    def _evict(self, pod: Stored) -> None:
        reason, message = "DeviceTaintManagerEviction", "Marking for deletion"
        self.shared.recorder.normal(_SOURCE, PODS, pod, reason, message)
        now = self.registry.clock.now()
        why = "Device Taint manager: deleting due to NoExecute taint"
        self.registry.change_status(
            PODS,
            pod.namespace,
            pod.name,
            lambda obj: disruption_target(obj, "DeletionByDeviceTaintManager", why, now),
        )
        self.delete(PODS, pod)


def _must_go(pod: Stored, claim: Stored) -> bool:
    """Whether a pod runs with a claim of its specification."""
    if not pod.spec.get("nodeName") or pod.is_terminating or is_finished(pod):
        return False
    entries = pod.spec.get("resourceClaims") or ()
    names = [device_claim_name(pod.obj, entry) for entry in entries]
    return claim.name in names and is_reserved_for(claim, pod)


def _results(claim: Stored) -> list[Json]:
    allocation = claim.status.get("allocation") or {}
    return list((allocation.get("devices") or {}).get("results") or ())


def _pools_of_claim(claim: Stored) -> list[Pool]:
    return [(result["driver"], result["pool"]) for result in _results(claim)]


def _pool_of_slice(found: Stored) -> list[Pool]:
    return [(found.spec["driver"], found.spec["pool"]["name"])]


def _tainted_devices(found: Stored) -> list[Device]:
    if NO_EXECUTE.encode() not in found.content:
        return []
    driver, pool = found.spec["driver"], found.spec["pool"]["name"]
    devices = found.spec.get("devices") or ()
    return [(driver, pool, device["name"]) for device in devices if _taints_of(device)]


def _taints_of(device: Json) -> list[Taint]:
    """The NoExecute taints of a device."""
    taints = (convert_object(Taint, taint) for taint in device.get("taints") or ())
    return [taint for taint in taints if taint.effect == NO_EXECUTE]


def _generation(found: Stored) -> int:
    return int(found.spec["pool"].get("generation", 0))
