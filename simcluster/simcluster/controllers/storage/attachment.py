"""The simulated attacher: a VolumeAttachment for each CSI volume and node that uses it."""

import hashlib

from simcluster.controllers.reconciler import Key, Reconciler
from simcluster.kinds.resources import (
    CSI_DRIVERS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    VOLUME_ATTACHMENTS,
)
from simcluster.store.store import Change, Stored
from simcluster.values import Json


class AttachmentController(Reconciler):
    """Attaches volumes to the nodes of the pods that use them, and detaches them afterwards.

    Keys name claims.
    """

    def follow(self) -> None:
        """Follow pods that use claims, and claims that are bound."""
        self._pods = self.shared.pods_by_claim
        self._attached: dict[Key, dict[str, str]] = {}
        self._pods.on_change(lambda namespace, name: self.enqueue(Key(namespace, name)))
        self.subscribe(PERSISTENT_VOLUME_CLAIMS, self._on_claim)
        self._remember()

    def _remember(self) -> None:
        """Record existing attachments, and reconcile every claim in use."""
        volumes: dict[str, dict[str, str]] = {}
        for stored in self.store.collection(VOLUME_ATTACHMENTS.stored_in):
            name = (stored.obj["spec"].get("source") or {}).get("persistentVolumeName")
            if name:
                volumes.setdefault(name, {})[stored.obj["spec"]["nodeName"]] = stored.name
        for claim in self.store.collection(PERSISTENT_VOLUME_CLAIMS.stored_in):
            key = Key(claim.namespace, claim.name)
            attached = volumes.get(claim.obj["spec"].get("volumeName") or "")
            if attached:
                self._attached[key] = attached
            if attached or self._pods.of(key):
                self.enqueue(key)

    def _on_claim(self, change: Change) -> None:
        key = Key(change.current.namespace, change.current.name)
        if key in self._attached or self._pods.of(key):
            self.enqueue(key)

    def reconcile(self, key: Key) -> None:
        """Attach a claim's volume to the nodes of its pods and detach it from all others."""
        attached = self._attached.setdefault(key, {})
        volume = self._volume(key)
        wanted = set()
        if volume is not None and self._must_attach(volume):
            wanted = {pod.obj["spec"].get("nodeName") for pod in self._pods.of(key)} - {None}
        for node_name in attached.keys() - wanted:
            attachment = self.find(VOLUME_ATTACHMENTS, "", attached.pop(node_name))
            if attachment is not None:
                self.delete(VOLUME_ATTACHMENTS, attachment)
        for node_name in sorted(wanted - attached.keys()):
            if volume is not None:
                attached[node_name] = self._attach(volume, node_name)
        if not attached:
            del self._attached[key]

    def _volume(self, key: Key) -> Stored | None:
        claim = self.find(PERSISTENT_VOLUME_CLAIMS, *key)
        if claim is None or claim.obj["status"].get("phase") != "Bound":
            return None
        name = claim.obj["spec"].get("volumeName") or ""
        return self.find(PERSISTENT_VOLUMES, "", name)

    def _must_attach(self, volume: Stored) -> bool:
        """Only CSI volumes are attached, and only if their driver requires it."""
        source = volume.obj["spec"].get("csi")
        if not source:
            return False
        driver = self.find(CSI_DRIVERS, "", source["driver"])
        return driver is None or bool(driver.obj["spec"].get("attachRequired", True))

    def _attach(self, volume: Stored, node_name: str) -> str:
        name = attachment_name(volume.obj["spec"]["csi"], node_name)
        if self.find(VOLUME_ATTACHMENTS, "", name) is not None:
            return name
        driver = volume.obj["spec"]["csi"]["driver"]
        attachment: Json = {
            "metadata": {
                "name": name,
                "annotations": {"csi.alpha.kubernetes.io/node-id": node_name},
            },
            "spec": {
                "attacher": driver,
                "nodeName": node_name,
                "source": {"persistentVolumeName": volume.name},
            },
        }
        self.registry.create(VOLUME_ATTACHMENTS, "", attachment)
        self.registry.change_status(VOLUME_ATTACHMENTS, "", name, lambda _obj: {"attached": True})
        return name


def attachment_name(source: Json, node_name: str) -> str:
    """The name kube-controller-manager gives an attachment."""
    text = f"{source['volumeHandle']}{source['driver']}{node_name}"
    return f"csi-{hashlib.sha256(text.encode()).hexdigest()}"
