"""The simulated provisioner: creates and deletes volumes, with delays and failures on request."""

import contextlib

from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.controllers.storage.provisioning_topology import (
    Topology,
    allowed_segments,
    node_topology,
)
from simcluster.controllers.storage.storage_pools import StoragePools
from simcluster.controllers.storage.volume_fit import (
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    annotation,
    claim_reference,
    class_of,
    mode_of,
    requested,
)
from simcluster.kinds.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from simcluster.store.registry import editable
from simcluster.store.store import Change, Stored
from simcluster.values import Json
from stowage.api import quantity_value

DELAY = "stowage/delay-seconds"
FAIL = "stowage/fail"
FAIL_TIMES = "stowage/fail-times"
RESOURCE_EXHAUSTED = "ResourceExhausted"
_RETRY_S = 1.0
_MAX_RETRY_S = 60.0


class ProvisionerController(Reconciler):
    """Provisions and deletes volumes of every class whose provisioner is not ``no-provisioner``.

    Parameters of a StorageClass make it slow or fail: ``stowage/delay-seconds``, ``stowage/fail``
    with the message of the failure, ``stowage/fail-times`` (without it, always). A failure whose
    message begins with ``ResourceExhausted`` removes the selected node, as the
    external-provisioner does, so that the scheduler chooses again. So does a segment whose pool
    (see ``storage_pools``) has too little free capacity.
    """

    def follow(self) -> None:
        """Follow claims that ask for a volume, and volumes that are released."""
        self._pools = StoragePools(self.registry)
        self._asked_at: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self.subscribe(PERSISTENT_VOLUME_CLAIMS, self._on_claim)
        self.subscribe(PERSISTENT_VOLUMES, self._on_volume)
        self.subscribe(STORAGE_CLASSES, self._on_class)
        self.enqueue_all(STORAGE_CLASSES)
        self.enqueue_all(PERSISTENT_VOLUME_CLAIMS)
        for volume in self.store.collection(PERSISTENT_VOLUMES.stored_in):
            self.enqueue(_volume_key(volume))

    def _on_claim(self, change: Change) -> None:
        key = key_of(change)
        if change.type == "DELETED" or change.current.spec.get("volumeName"):
            self._forget(key)
        elif annotation(change.current.obj, STORAGE_PROVISIONER):
            self.enqueue(key)

    def _forget(self, key: Key) -> None:
        self._asked_at.pop(key, None)
        self._failures.pop(key, None)
        self.forget_timer(key)

    def _on_volume(self, change: Change) -> None:
        self._pools.see_volume(change)
        if change.type != "DELETED":
            self.enqueue(_volume_key(change.current))

    def _on_class(self, change: Change) -> None:
        if change.type == "DELETED":
            self._pools.close(change.current)
        else:
            self._pools.open(change.current)

    def reconcile(self, key: Key) -> None:
        """Create a claim's volume, delete a released one, or publish the pools of a class."""
        if key.namespace == "/volume":
            self._reclaim(key.name)
            return
        if not key.namespace:
            storage_class = self.find(STORAGE_CLASSES, "", key.name)
            if storage_class is not None:
                self._pools.open(storage_class)
            return
        claim = self.find(PERSISTENT_VOLUME_CLAIMS, *key)
        if claim is None or not _wants_volume(claim):
            return
        storage_class = self.find(STORAGE_CLASSES, "", class_of(claim.obj))
        if storage_class is not None and self._is_due(key, claim, storage_class):
            self._provision(key, claim, storage_class)

    def _is_due(self, key: Key, claim: Stored, storage_class: Stored) -> bool:
        """Whether the class's delay is over; it begins with the first request."""
        waits = storage_class.obj.get("volumeBindingMode") == "WaitForFirstConsumer"
        if waits and not annotation(claim.obj, SELECTED_NODE):
            self._asked_at.pop(key, None)
            return False
        now = self.registry.clock.time_s()
        if key not in self._asked_at:
            what = (
                "External provisioner is provisioning volume for claim "
                f'"{claim.namespace}/{claim.name}"'
            )
            self._tell(claim, storage_class, "Provisioning", what)
        left_s = self._asked_at.setdefault(key, now) + _number(storage_class, DELAY) - now
        if left_s > 0:
            self.enqueue_after(key, left_s)
        return left_s <= 0

    def _provision(self, key: Key, claim: Stored, storage_class: Stored) -> None:
        topology = self._topology(claim, storage_class)
        size = quantity_value(requested(claim))
        failure = self._failure(key, storage_class)
        if failure is None and topology is None:
            failure = "error generating accessibility requirements: no available topology found"
        if failure is None and not self._pools.has_room(storage_class, topology, size):
            failure = f"{RESOURCE_EXHAUSTED}: not enough free capacity"
        if failure is not None or topology is None:
            self._fail(key, claim, storage_class, failure or "")
            return
        volume = self.registry.create(
            PERSISTENT_VOLUMES, "", _volume(claim, storage_class, topology)
        )
        self._forget(key)
        what = f"Successfully provisioned volume {volume.name}"
        self._tell(claim, storage_class, "ProvisioningSucceeded", what)

    def _topology(self, claim: Stored, storage_class: Stored) -> Topology | None:
        """The segments of the new volume; ``None`` if the selected node is not allowed."""
        node_name = annotation(claim.obj, SELECTED_NODE)
        allowed = allowed_segments(storage_class.obj.get("allowedTopologies") or ())
        if node_name:
            here = node_topology(self.store, node_name, storage_class.obj["provisioner"])
            is_allowed = not allowed or any(segment.items() <= here.items() for segment in allowed)
            return [here] if is_allowed else None
        return self._pools.freest(storage_class, allowed)

    def _failure(self, key: Key, storage_class: Stored) -> str | None:
        """The failure that the class's parameters request now."""
        message = (storage_class.obj.get("parameters") or {}).get(FAIL)
        times = _number(storage_class, FAIL_TIMES, float("inf"))
        is_failing = message is not None and self._failures.get(key, 0) < times
        return str(message) if is_failing else None

    def _fail(self, key: Key, claim: Stored, storage_class: Stored, why: str) -> None:
        count = self._failures[key] = self._failures.get(key, 0) + 1
        text = f'failed to provision volume with StorageClass "{storage_class.name}": {why}'
        self.shared.recorder.warning(
            storage_class.obj["provisioner"],
            PERSISTENT_VOLUME_CLAIMS,
            claim,
            "ProvisioningFailed",
            text,
        )
        self._asked_at.pop(key, None)
        if why.startswith(RESOURCE_EXHAUSTED) and annotation(claim.obj, SELECTED_NODE):
            obj = editable(claim)
            del obj["metadata"]["annotations"][SELECTED_NODE]
            self.registry.replace(PERSISTENT_VOLUME_CLAIMS, claim, obj)
            return
        self.enqueue_after(key, min(_RETRY_S * 2.0 ** (count - 1), _MAX_RETRY_S))

    def _tell(self, claim: Stored, storage_class: Stored, reason: str, what: str) -> None:
        source = storage_class.obj["provisioner"]
        self.shared.recorder.normal(source, PERSISTENT_VOLUME_CLAIMS, claim, reason, what)

    def _reclaim(self, name: str) -> None:
        """Delete a released volume that was provisioned here and whose policy is Delete."""
        volume = self.find(PERSISTENT_VOLUMES, "", name)
        if volume is None or volume.status.get("phase") != "Released":
            return
        is_ours = bool(annotation(volume.obj, PROVISIONED_BY))
        policy = volume.spec.get("persistentVolumeReclaimPolicy")
        if is_ours and policy == "Delete" and not volume.is_terminating:
            self.delete(PERSISTENT_VOLUMES, volume)


def _volume_key(volume: Stored) -> Key:
    return Key("/volume", volume.name)


def _wants_volume(claim: Stored) -> bool:
    is_unbound = not claim.spec.get("volumeName")
    is_going = claim.is_terminating
    return bool(is_unbound and not is_going and annotation(claim.obj, STORAGE_PROVISIONER))


def _number(storage_class: Stored, name: str, default: float = 0.0) -> float:
    text = (storage_class.obj.get("parameters") or {}).get(name)
    if text is not None:
        with contextlib.suppress(ValueError):
            return float(text)
    return default


def _volume(claim: Stored, storage_class: Stored, topology: Topology) -> Json:
    uid, provisioner = claim.uid, storage_class.obj["provisioner"]
    volume: Json = {
        "metadata": {"name": f"pvc-{uid}", "annotations": {PROVISIONED_BY: provisioner}},
        "spec": {
            "capacity": {"storage": requested(claim)},
            "accessModes": list(claim.spec.get("accessModes") or ["ReadWriteOnce"]),
            "volumeMode": mode_of(claim.obj),
            "storageClassName": storage_class.name,
            "persistentVolumeReclaimPolicy": storage_class.obj.get("reclaimPolicy", "Delete"),
            "csi": {"driver": provisioner, "volumeHandle": f"pvc-{uid}"},
            "claimRef": claim_reference(claim),
        },
    }
    if storage_class.obj.get("mountOptions"):
        volume["spec"]["mountOptions"] = list(storage_class.obj["mountOptions"])
    terms = [
        {
            "matchExpressions": [
                {"key": key, "operator": "In", "values": [value]}
                for key, value in sorted(segment.items())
            ]
        }
        for segment in topology
        if segment
    ]
    if terms:
        volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return volume
