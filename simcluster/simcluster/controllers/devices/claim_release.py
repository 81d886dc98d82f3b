"""Releases claims of devices when their pods end.

The second half of kube-controller-manager's ``resourceclaim`` controller.
"""

from simcluster.controllers.devices.references import (
    device_claims_of,
    is_done,
    uses_device_claims,
)
from simcluster.controllers.ownership import controller_reference
from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.kinds.resources import PODS, RESOURCE_CLAIMS
from simcluster.store.store import Change, Stored
from simcluster.values import Json

CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"


class DeviceClaimReleaseController(Reconciler):
    """Removes reservations of pods that are gone or done.

    A claim that loses its last reservation is deallocated and loses its finalizer, as does a claim
    without reservations that is being deleted. A claim that was made for a pod is deleted when the
    pod is done.
    """

    def follow(self) -> None:
        """Follow claims, and pods that end."""
        self.subscribe(RESOURCE_CLAIMS, self._on_claim)
        self.subscribe(PODS, self._on_pod)
        self.enqueue_all(RESOURCE_CLAIMS)

    def _on_claim(self, change: Change) -> None:
        if change.type != "DELETED":
            self.enqueue(key_of(change))

    def _on_pod(self, change: Change) -> None:
        pod = change.current
        if uses_device_claims(pod) and (change.type == "DELETED" or is_done(pod)):
            for name in device_claims_of(pod.obj):
                self.enqueue(Key(pod.namespace, name))

    def reconcile(self, key: Key) -> None:
        """Bring one claim in line with the pods that use it."""
        claim = self.find(RESOURCE_CLAIMS, *key)
        if claim is None:
            return
        reserved = claim.status.get("reservedFor") or []
        valid = [consumer for consumer in reserved if self._is_valid(key.namespace, consumer)]
        is_protected = CLAIM_FINALIZER in claim.finalizers
        if len(valid) < len(reserved):
            self._write(claim, valid, deallocates=not valid and is_protected)
        elif is_protected and claim.is_terminating and not valid:
            self._write(claim, valid, deallocates=True)
        if not valid:
            self._delete_unneeded(key)

    def _is_valid(self, namespace: str, consumer: Json) -> bool:
        """Whether a reservation stands; other consumers than pods are left alone."""
        if consumer.get("apiGroup") or consumer["resource"] != "pods":
            return True
        pod = self.find(PODS, namespace, consumer["name"])
        return pod is not None and pod.uid == consumer["uid"] and not is_done(pod)

    def _write(self, claim: Stored, reserved: list[Json], *, deallocates: bool) -> None:
        """Write the reservations that stand; deallocate first, then drop the finalizer."""
        dropped = {"reservedFor", *(("allocation", "devices") if deallocates else ())}
        status = {field: value for field, value in claim.status.items() if field not in dropped}
        if reserved:
            status["reservedFor"] = reserved
        written = self.registry.change_status(
            RESOURCE_CLAIMS, claim.namespace, claim.name, lambda _claim: status
        )
        if deallocates and written is not None:
            left = [name for name in written.finalizers if name != CLAIM_FINALIZER]
            self.write_list(RESOURCE_CLAIMS, written, "finalizers", left)

    def _delete_unneeded(self, key: Key) -> None:
        """Delete a claim that was made for a pod which is done or replaced."""
        claim = self.find(RESOURCE_CLAIMS, *key)
        owner = controller_reference(claim.obj) if claim is not None else None
        if claim is None or owner is None or claim.is_terminating:
            return
        if (owner["apiVersion"], owner["kind"]) != (PODS.api_version, PODS.kind):
            return
        pod = self.find(PODS, key.namespace, owner["name"])
        if pod is not None and (pod.uid != owner["uid"] or is_done(pod)):
            self.delete(RESOURCE_CLAIMS, claim)
