"""PersistentVolumes and their claims: binding, release and reclaim."""

from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.controllers.storage.volume_fit import (
    BETA_STORAGE_PROVISIONER,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    annotation,
    best_volume,
    claim_reference,
    class_of,
    fits,
    is_claimed_by,
    mode_of,
)
from simcluster.controllers.storage.volume_index import VolumeIndex
from simcluster.kinds.admission.volumes import is_default_class, set_default_class
from simcluster.kinds.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from simcluster.store.registry import editable
from simcluster.store.store import Change, Stored
from simcluster.values import Json

_SOURCE = "persistentvolume-controller"


class VolumeController(Reconciler):
    """Binds claims and volumes to each other, and asks provisioners for volumes.

    A claim of a WaitForFirstConsumer class waits until a scheduler has given it a volume
    (``claimRef``) or a node (the selected-node annotation). Keys without a namespace are volumes.
    """

    def follow(self) -> None:
        """Follow claims, volumes and classes."""
        self._index = VolumeIndex(self.store)
        self.subscribe(PERSISTENT_VOLUME_CLAIMS, self._on_claim)
        self.subscribe(PERSISTENT_VOLUMES, self._on_volume)
        self.subscribe(STORAGE_CLASSES, self._on_class)
        self.enqueue_all(PERSISTENT_VOLUMES)
        self.enqueue_all(PERSISTENT_VOLUME_CLAIMS)

    def _on_claim(self, change: Change) -> None:
        self._index.see_claim(change)
        self.enqueue(key_of(change))
        volume_name = change.current.spec.get("volumeName")
        if volume_name:
            self.enqueue(Key("", volume_name))

    def _on_volume(self, change: Change) -> None:
        self._index.see_volume(change)
        volume = change.current
        self.enqueue(key_of(change))
        claim = volume.spec.get("claimRef")
        if claim:
            self.enqueue(Key(claim.get("namespace", ""), claim.get("name", "")))
        elif change.type != "DELETED":
            class_name = class_of(volume.obj)
            for key in self._index.naming(volume.name) + self._index.pending_claims(class_name):
                self.enqueue(Key(*key))

    def _on_class(self, change: Change) -> None:
        classless = self._index.pending_claims("") if is_default_class(change.current) else []
        for key in self._index.pending_claims(change.current.name) + classless:
            self.enqueue(Key(*key))

    def reconcile(self, key: Key) -> None:
        """Reconcile a claim or, if the key has no namespace, a volume."""
        if not key.namespace:
            volume = self.find(PERSISTENT_VOLUMES, "", key.name)
            if volume is not None:
                self._update_volume(volume)
            return
        claim = self.find(PERSISTENT_VOLUME_CLAIMS, *key)
        if claim is None:
            return
        if annotation(claim.obj, BIND_COMPLETED):
            self._check_bound(claim)
        elif claim.spec.get("volumeName"):
            self._bind_named(claim)
        else:
            self._bind_unbound(claim)

    def _check_bound(self, claim: Stored) -> None:
        """Keep a claim bound, or mark it as lost."""
        name = claim.spec.get("volumeName") or ""
        volume = self.find(PERSISTENT_VOLUMES, "", name) if name else None
        if volume is None:
            self._lose(
                claim,
                "ClaimLost",
                "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
            )
        elif not volume.spec.get("claimRef") or is_claimed_by(volume, claim):
            self._bind(claim, volume)
        else:
            self._lose(
                claim,
                "ClaimMisbound",
                "Two claims are bound to the same volume, this one is bound incorrectly",
            )

    def _lose(self, claim: Stored, reason: str, why: str) -> None:
        if claim.status.get("phase") == "Lost":
            return
        self._set_claim_status(claim, {"phase": "Lost"})
        self.shared.recorder.warning(_SOURCE, PERSISTENT_VOLUME_CLAIMS, claim, reason, why)

    def _bind_named(self, claim: Stored) -> None:
        """Bind a claim to the volume that it names, if this is free."""
        name = claim.spec["volumeName"]
        volume = self.find(PERSISTENT_VOLUMES, "", name)
        if volume is not None and (not volume.spec.get("claimRef") or is_claimed_by(volume, claim)):
            self._bind(claim, volume)
        else:
            self._set_claim_status(claim, {"phase": "Pending"})

    def _bind_unbound(self, claim: Stored) -> None:
        """Bind a claim to the volume reserved for it, the best free one, or ask for a new one."""
        if claim.is_terminating:
            return
        volume = self._reserved_volume(claim)
        storage_class = self.find(STORAGE_CLASSES, "", class_of(claim.obj))
        waits = _waits(claim, storage_class)
        if volume is None and not waits:
            volume = best_volume(self._index.free_volumes(class_of(claim.obj)), claim)
        if volume is not None:
            self._bind(claim, volume)
            return
        if not class_of(claim.obj) and self._set_default_class(claim):
            return
        self._set_claim_status(claim, {"phase": "Pending"})
        recorder, kind = self.shared.recorder, PERSISTENT_VOLUME_CLAIMS
        if waits and not annotation(claim.obj, SELECTED_NODE):
            why = "waiting for first consumer to be created before binding"
            recorder.normal(_SOURCE, kind, claim, "WaitForFirstConsumer", why)
        elif not class_of(claim.obj):
            why = "no persistent volumes available for this claim and no storage class is set"
            recorder.normal(_SOURCE, kind, claim, "FailedBinding", why)
        elif storage_class is None:
            why = f'storageclass.storage.k8s.io "{class_of(claim.obj)}" not found'
            recorder.warning(_SOURCE, kind, claim, "ProvisioningFailed", why)
        else:
            self._ask_for_volume(claim, storage_class)

    def _set_default_class(self, claim: Stored) -> bool:
        """Give a claim the default class if this was made later; the update is reconciled."""
        obj = editable(claim)
        is_changed = set_default_class(self.store, obj)
        if is_changed:
            self.registry.replace(PERSISTENT_VOLUME_CLAIMS, claim, obj)
        return is_changed

    def _reserved_volume(self, claim: Stored) -> Stored | None:
        """The volume whose ``claimRef`` names the claim, if it fits."""
        for name in self._index.reserved_for(claim.namespace, claim.name):
            volume = self.find(PERSISTENT_VOLUMES, "", name)
            if volume is None or not is_claimed_by(volume, claim):
                continue
            same_class = class_of(volume.obj) == class_of(claim.obj)
            if same_class and mode_of(volume.obj) == mode_of(claim.obj) and fits(volume, claim):
                return volume
        return None

    def _ask_for_volume(self, claim: Stored, storage_class: Stored) -> None:
        """Annotate the claim for the provisioner of its class."""
        provisioner = storage_class.obj["provisioner"]
        recorder, kind = self.shared.recorder, PERSISTENT_VOLUME_CLAIMS
        if provisioner == NO_PROVISIONER:
            why = "no persistent volumes available for this claim and no provisioner is set"
            recorder.normal(_SOURCE, kind, claim, "FailedBinding", why)
            return
        if annotation(claim.obj, STORAGE_PROVISIONER) == provisioner:
            return
        obj = editable(claim)
        annotations = obj["metadata"].setdefault("annotations", {})
        annotations[STORAGE_PROVISIONER] = annotations[BETA_STORAGE_PROVISIONER] = provisioner
        self.registry.replace(PERSISTENT_VOLUME_CLAIMS, claim, obj)
        why = (
            "Waiting for a volume to be created either by the external provisioner "
            f"'{provisioner}' or manually by the system administrator. If volume creation is "
            "delayed, please verify that the provisioner is running and correctly registered."
        )
        recorder.normal(_SOURCE, kind, claim, "ExternalProvisioning", why)

    def _bind(self, claim: Stored, volume: Stored) -> None:
        """Bind volume and claim to each other, in their specs and statuses."""
        reference = volume.spec.get("claimRef") or {}
        if not reference.get("uid"):
            obj = editable(volume)
            obj["spec"]["claimRef"] = claim_reference(claim)
            if not reference:
                obj["metadata"].setdefault("annotations", {})[BOUND_BY_CONTROLLER] = "yes"
            volume = self.registry.replace(PERSISTENT_VOLUMES, volume, obj)
        self._set_volume_phase(volume, "Bound")
        obj = editable(claim)
        annotations = obj["metadata"].setdefault("annotations", {})
        if not obj["spec"].get("volumeName"):
            annotations[BOUND_BY_CONTROLLER] = "yes"
            obj["spec"]["volumeName"] = volume.name
        annotations.setdefault(BIND_COMPLETED, "yes")
        claim = self.registry.replace(PERSISTENT_VOLUME_CLAIMS, claim, obj)
        self._set_claim_status(
            claim,
            {
                "phase": "Bound",
                "accessModes": volume.spec.get("accessModes") or [],
                "capacity": volume.spec.get("capacity") or {},
            },
        )

    def _set_claim_status(self, claim: Stored, fresh: Json) -> None:
        self.registry.change_status(
            PERSISTENT_VOLUME_CLAIMS,
            claim.namespace,
            claim.name,
            lambda obj: {**obj["status"], **fresh},
        )

    def _update_volume(self, volume: Stored) -> None:
        reference = volume.spec.get("claimRef")
        if not reference or not reference.get("uid"):
            self._set_volume_phase(volume, "Available")
            return
        claim = self.find(PERSISTENT_VOLUME_CLAIMS, reference["namespace"], reference["name"])
        if claim is not None and claim.uid == reference["uid"]:
            return
        if volume.status.get("phase") != "Failed":
            self._set_volume_phase(volume, "Released")
        if annotation(volume.obj, PROVISIONED_BY) or "csi" in volume.spec:
            return
        if volume.spec.get("persistentVolumeReclaimPolicy") == "Delete":
            why = f'error getting deleter volume plugin for volume "{volume.name}": no volume '
            why += "plugin matched"
            self._set_volume_phase(volume, "Failed")
            self.shared.recorder.warning(
                _SOURCE, PERSISTENT_VOLUMES, volume, "VolumeFailedDelete", why
            )

    def _set_volume_phase(self, volume: Stored, phase: str) -> None:
        now = self.registry.clock.now()

        def with_phase(obj: Json) -> Json:
            before = obj["status"]
            if before.get("phase") == phase:
                return dict(before)
            return {**before, "phase": phase, "lastPhaseTransitionTime": now}

        self.registry.change_status(PERSISTENT_VOLUMES, "", volume.name, with_phase)


def _waits(claim: Stored, storage_class: Stored | None) -> bool:
    """Whether a claim waits for the first pod that uses it."""
    mode = storage_class.obj.get("volumeBindingMode") if storage_class is not None else ""
    return mode == "WaitForFirstConsumer" and not claim.spec.get("volumeName")
