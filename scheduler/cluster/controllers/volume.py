"""Volumes: claims get the volume that was chosen for them, that fits them, or a new one."""

from typing import Any

from scheduler.api import quantity_value
from scheduler.cluster.controllers.reconciler import Key, Reconciler, key_of
from scheduler.cluster.deletion import DeleteOptions
from scheduler.cluster.nodes import HOSTNAME, ZONE
from scheduler.cluster.registry import editable
from scheduler.cluster.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
)
from scheduler.cluster.selectors import match_label_selector
from scheduler.cluster.store import Change, Stored

Json = dict[str, Any]

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_CLAIM_KIND = PERSISTENT_VOLUME_CLAIMS.kind


class VolumeController(Reconciler):
    """Binds claims and volumes to each other; provisions where the class has a provisioner.

    A claim of a WaitForFirstConsumer class waits until a scheduler has given it a volume
    (``claimRef``) or a node (the selected-node annotation).
    """

    def follow(self) -> None:
        """Follow claims and volumes."""
        self.subscribe(PERSISTENT_VOLUME_CLAIMS, self._on_claim)
        self.subscribe(PERSISTENT_VOLUMES, self._on_volume)
        self.enqueue_all(PERSISTENT_VOLUMES)
        self.enqueue_all(PERSISTENT_VOLUME_CLAIMS)

    def _on_claim(self, change: Change) -> None:
        self.enqueue(key_of(change))
        volume_name = change.current.obj["spec"].get("volumeName")
        if volume_name:
            self.enqueue(Key("", volume_name))

    def _on_volume(self, change: Change) -> None:
        self.enqueue(key_of(change))
        claim = change.current.obj["spec"].get("claimRef")
        if claim:
            self.enqueue(Key(claim["namespace"], claim["name"]))
            return
        for stored in self.store.collection(PERSISTENT_VOLUME_CLAIMS.stored_in):
            if stored.obj["status"].get("phase") == "Pending":
                self.enqueue(Key(stored.namespace, stored.name))

    def reconcile(self, key: Key) -> None:
        """Look at a claim, or, where the key has no namespace, at a volume."""
        if not key.namespace:
            self._reconcile_volume(key.name)
            return
        claim = self.store.get(PERSISTENT_VOLUME_CLAIMS.stored_in, *key)
        if claim is None or claim.obj["metadata"].get("deletionTimestamp"):
            return
        volume = self._volume_for(claim)
        if volume is not None:
            self._bind(claim, volume)

    def _reconcile_volume(self, name: str) -> None:
        volume = self.store.get(PERSISTENT_VOLUMES.stored_in, "", name)
        if volume is None:
            return
        reference = volume.obj["spec"].get("claimRef")
        if reference is None:
            self._set_volume_phase(volume, "Available")
            return
        claim = self.store.get(
            PERSISTENT_VOLUME_CLAIMS.stored_in, reference["namespace"], reference["name"]
        )
        uid = reference.get("uid")
        if not uid or (claim is not None and claim.obj["metadata"]["uid"] == uid):
            return
        if volume.obj["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
            self.registry.delete(PERSISTENT_VOLUMES, "", name, DeleteOptions())
        else:
            self._set_volume_phase(volume, "Released")

    def _set_volume_phase(self, volume: Stored, phase: str) -> None:
        self.registry.change_status(
            PERSISTENT_VOLUMES, "", volume.name, lambda obj: {**obj["status"], "phase": phase}
        )

    def _volume_for(self, claim: Stored) -> Stored | None:
        """The volume a claim has, was given, finds, or gets provisioned."""
        volumes = self.store.collection(PERSISTENT_VOLUMES.stored_in)
        spec = claim.obj["spec"]
        if spec.get("volumeName"):
            return volumes.get("", spec["volumeName"])
        given = next((volume for volume in volumes if _is_given(volume, claim)), None)
        if given is not None:
            return given
        storage_class = self.store.get(
            STORAGE_CLASSES.stored_in, "", spec.get("storageClassName") or ""
        )
        node_name = (claim.obj["metadata"].get("annotations") or {}).get(SELECTED_NODE, "")
        waits = (
            storage_class is not None
            and storage_class.obj["volumeBindingMode"] == "WaitForFirstConsumer"
        )
        if waits and not node_name:
            return None
        fitting = [volume for volume in volumes if _fits(volume, claim)]
        if fitting and not waits:
            return min(fitting, key=lambda volume: (_capacity(volume), volume.name))
        if storage_class is None or storage_class.obj["provisioner"] == NO_PROVISIONER:
            return None
        return self._provision(claim, storage_class, node_name)

    def _provision(self, claim: Stored, storage_class: Stored, node_name: str) -> Stored:
        uid, spec = claim.obj["metadata"]["uid"], claim.obj["spec"]
        provisioner = storage_class.obj["provisioner"]
        volume: Json = {
            "metadata": {"name": f"pvc-{uid}", "annotations": {PROVISIONED_BY: provisioner}},
            "spec": {
                "capacity": {"storage": _request(claim)},
                "accessModes": list(spec.get("accessModes") or ["ReadWriteOnce"]),
                "storageClassName": storage_class.name,
                "persistentVolumeReclaimPolicy": storage_class.obj["reclaimPolicy"],
                "csi": {"driver": provisioner, "volumeHandle": f"pvc-{uid}"},
                "claimRef": _reference(claim),
            },
        }
        term = self._topology_term(node_name)
        if term is not None:
            volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
        return self.registry.create(PERSISTENT_VOLUMES, "", volume)

    def _topology_term(self, node_name: str) -> Json | None:
        """A provisioned volume stays in its node's zone, or on the node where there are none."""
        node = self.store.get(NODES.stored_in, "", node_name)
        labels = (node.obj["metadata"].get("labels") or {}) if node is not None else {}
        key = next((label for label in (ZONE, HOSTNAME) if label in labels), None)
        if key is None:
            return None
        return {"matchExpressions": [{"key": key, "operator": "In", "values": [labels[key]]}]}

    def _bind(self, claim: Stored, volume: Stored) -> None:
        reference = volume.obj["spec"].get("claimRef")
        if reference and not _is_given(volume, claim):
            return
        if not (reference or {}).get("uid"):
            obj = editable(volume)
            obj["spec"]["claimRef"] = _reference(claim)
            volume = self.registry.replace(PERSISTENT_VOLUMES, volume, obj)
        self._set_volume_phase(volume, "Bound")
        obj = editable(claim)
        obj["metadata"].setdefault("annotations", {})[BIND_COMPLETED] = "yes"
        obj["spec"]["volumeName"] = volume.name
        self.registry.replace(PERSISTENT_VOLUME_CLAIMS, claim, obj)
        status = {
            "phase": "Bound",
            "accessModes": volume.obj["spec"].get("accessModes") or [],
            "capacity": volume.obj["spec"].get("capacity") or {},
        }
        self.registry.change_status(
            PERSISTENT_VOLUME_CLAIMS, claim.namespace, claim.name, lambda _obj: status
        )


def _reference(claim: Stored) -> Json:
    return {
        "kind": _CLAIM_KIND,
        "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.obj["metadata"]["uid"],
    }


def _is_given(volume: Stored, claim: Stored) -> bool:
    """The volume's claimRef names the claim."""
    reference = volume.obj["spec"].get("claimRef") or {}
    named = (reference.get("namespace"), reference.get("name"))
    uid = claim.obj["metadata"]["uid"]
    return named == (claim.namespace, claim.name) and reference.get("uid") in {None, "", uid}


def _request(claim: Stored) -> str:
    requests = (claim.obj["spec"].get("resources") or {}).get("requests") or {}
    return str(requests.get("storage", "0"))


def _capacity(volume: Stored) -> int:
    return quantity_value((volume.obj["spec"].get("capacity") or {}).get("storage", "0"))


def _fits(volume: Stored, claim: Stored) -> bool:
    """Whether a free volume has the class, modes, size and labels a claim asks for."""
    has, wants = volume.obj["spec"], claim.obj["spec"]
    if has.get("claimRef") or volume.obj["metadata"].get("deletionTimestamp"):
        return False
    same_class = (has.get("storageClassName") or "") == (wants.get("storageClassName") or "")
    same_mode = has["volumeMode"] == wants["volumeMode"]
    has_modes = set(wants.get("accessModes") or ()) <= set(has.get("accessModes") or ())
    labels = volume.obj["metadata"].get("labels") or {}
    selected = "selector" not in wants or match_label_selector(wants["selector"], labels)
    is_large = _capacity(volume) >= quantity_value(_request(claim))
    return same_class and same_mode and has_modes and selected and is_large
