"""Prepares the claims of devices of a node's pods, and keeps a ledger of the devices in use.

A pod waits until its claims are allocated and reserved for it, with the Event of a kubelet. Unlike
a kubelet, which leaves that to the drivers, the simulated one refuses a pod whose claim has a
device that another claim holds, or that is not for the node, so that the pod fails and the mistake
is seen.
"""

from typing import NamedTuple

from simcluster.controllers.devices.references import (
    device_claim_name,
    device_claims_of,
    is_made_for,
    is_reserved_for,
    uses_device_claims,
)
from simcluster.controllers.recorder import EventRecorder
from simcluster.kinds.resources import NODES, PODS, RESOURCE_CLAIMS
from simcluster.kubelet.node_load import Refusal
from simcluster.kubelet.nodes import is_selected
from simcluster.store.registry import Registry
from simcluster.store.store import Change, Stored
from simcluster.values import Json

REASON = "FailedPrepareDynamicResources"
_TEXT = "Failed to prepare dynamic resources: prepare dynamic resources: "

Device = tuple[str, str, str, str]
"""Driver, pool, name, and the share of a device that several claims can have."""
PodName = tuple[str, str]


class _Holder(NamedTuple):
    claim_uid: str
    claim: str


class _NotReadyError(Exception):
    """A pod must wait for a claim."""


class DeviceClaims:
    """The prepared claims of all pods, and the pods that wait for theirs.

    Args:
        registry: claims, and where Events are written.
    """

    def __init__(self, registry: Registry) -> None:
        self._store = registry.store
        self._recorder = EventRecorder(registry)
        self._holders: dict[Device, _Holder] = {}
        self._devices: dict[str, list[Device]] = {}
        """The devices of each prepared claim, by its uid."""
        self._pods: dict[str, set[str]] = {}
        """The uids of the pods that use a prepared claim, by its uid."""
        self._claims: dict[str, list[str]] = {}
        """The uids of the claims that a pod uses, by its uid."""
        self._waiting: dict[PodName, None] = {}
        self._told: dict[str, str] = {}
        """Why a pod waits, by its uid."""

    def must_wait(self, pod: Stored) -> bool:
        """Whether a pod waits for a claim; :meth:`take` returns it later."""
        try:
            self._claims_of(pod)
        except _NotReadyError as error:
            self._waiting[pod.namespace, pod.name] = None
            if self._told.get(pod.uid) != str(error):
                self._told[pod.uid] = str(error)
                self._recorder.warning("kubelet", PODS, pod, REASON, f"{_TEXT}{error}")
            return True
        return False

    def take(self, change: Change) -> list[PodName]:
        """Remove and return the waiting pods that a changed claim is reserved for."""
        if not self._waiting or change.type == "DELETED":
            return []
        consumers = change.current.status.get("reservedFor") or ()
        return [
            name
            for consumer in consumers
            if (name := (change.current.namespace, consumer["name"])) in self._waiting
            and self.take_pod(name)
        ]

    def take_pod(self, name: PodName) -> bool:
        """Remove a pod from those that wait; whether it was there."""
        return self._waiting.pop(name, name) is None

    def prepare(self, pod: Stored) -> Refusal | None:
        """Hold the devices of a pod whose claims are ready, or return why it is refused."""
        claims = self._claims_of(pod)
        for claim in claims:
            refusal = self._refusal(pod, claim)
            if refusal is not None:
                return refusal
        for claim in claims:
            self._hold(pod, claim)
        return None

    def take_over(self, pod: Stored) -> None:
        """Hold the devices of a pod that runs from the start."""
        for name in device_claims_of(pod.obj) if uses_device_claims(pod) else ():
            claim = self._store.get(RESOURCE_CLAIMS.stored_in, pod.namespace, name)
            if claim is not None:
                self._hold(pod, claim)

    def release(self, pod_uid: str) -> None:
        """Free the devices of a finished or removed pod that no other pod uses."""
        self._told.pop(pod_uid, None)
        for claim_uid in self._claims.pop(pod_uid, ()):
            pods = self._pods[claim_uid]
            pods.discard(pod_uid)
            if not pods:
                del self._pods[claim_uid]
                for device in self._devices.pop(claim_uid):
                    self._holders.pop(device, None)

    def forget(self, pod: Stored) -> None:
        """Remove a deleted pod."""
        self.take_pod((pod.namespace, pod.name))
        self.release(pod.uid)

    def _claims_of(self, pod: Stored) -> list[Stored]:
        """The claims of a pod.

        Raises:
            _NotReadyError: a claim is missing, or not reserved for the pod.
        """
        if not uses_device_claims(pod):
            return []
        for entry in pod.spec.get("resourceClaims") or ():
            if device_claim_name(pod.obj, entry) is None:
                why = f'pod "{pod.namespace}/{pod.name}": ResourceClaim not created yet'
                raise _NotReadyError(why)
        return [self._claim(pod, name) for name in device_claims_of(pod.obj)]

    def _claim(self, pod: Stored, name: str) -> Stored:
        claim = self._store.get(RESOURCE_CLAIMS.stored_in, pod.namespace, name)
        if claim is None:
            why = f'fetch ResourceClaim {name}: {RESOURCE_CLAIMS.qualified} "{name}" not found'
            raise _NotReadyError(why)
        if _is_from_template(pod, name) and not is_made_for(claim, pod):
            place, owner = f"{pod.namespace}/{name}", f"{pod.namespace}/{pod.name}"
            why = f"ResourceClaim {place} was not created for Pod {owner} (Pod is not owner)"
            raise _NotReadyError(why)
        if not is_reserved_for(claim, pod):
            why = f"pod {pod.name} ({pod.uid}) is not allowed to use ResourceClaim {name}"
            raise _NotReadyError(f"{why} ({claim.uid})")
        return claim

    def _refusal(self, pod: Stored, claim: Stored) -> Refusal | None:
        place, node_name = f"{claim.namespace}/{claim.name}", pod.spec["nodeName"]
        node = self._store.get(NODES.stored_in, "", node_name)
        selector = (claim.status.get("allocation") or {}).get("nodeSelector")
        if node is not None and not is_selected(node, selector):
            why = f"ResourceClaim {place} is not allocated for node {node_name}"
            return Refusal("UnexpectedAdmissionError", why)
        for device in _devices_of(claim):
            holder = self._holders.get(device)
            if holder is not None and holder.claim_uid != claim.uid:
                shown = "/".join(filter(None, device))
                why = f"device {shown} of ResourceClaim {place} is held by {holder.claim}"
                return Refusal("UnexpectedAdmissionError", why)
        return None

    def _hold(self, pod: Stored, claim: Stored) -> None:
        self._claims.setdefault(pod.uid, []).append(claim.uid)
        self._pods.setdefault(claim.uid, set()).add(pod.uid)
        if claim.uid in self._devices:
            return
        holder = _Holder(claim.uid, f"ResourceClaim {claim.namespace}/{claim.name}")
        self._devices[claim.uid] = [
            device
            for device in _devices_of(claim)
            if self._holders.setdefault(device, holder) is holder
        ]


def _is_from_template(pod: Stored, claim_name: str) -> bool:
    statuses = pod.status.get("resourceClaimStatuses") or ()
    return any(status.get("resourceClaimName") == claim_name for status in statuses)


def _devices_of(claim: Stored) -> list[Device]:
    """The devices that a claim has for itself, without those it has admin access to."""
    allocation: Json = claim.status.get("allocation") or {}
    return [
        (result["driver"], result["pool"], result["device"], result.get("shareID", ""))
        for result in (allocation.get("devices") or {}).get("results") or ()
        if not result.get("adminAccess")
    ]
