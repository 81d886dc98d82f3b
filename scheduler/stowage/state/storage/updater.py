"""Updates of storage objects: maintains the look-ups and the use per node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stowage.api.objects.volume import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageObject,
    VolumeAttachment,
)
from stowage.api.values.csi_migration import AttachedVolume
from stowage.state.changes import StorageChange
from stowage.state.cluster_state import ClusterState
from stowage.state.storage.volume_use import attached_volume


class StorageUpdater:
    """The part of the cache that handles storage objects.

    A CSINode or VolumeAttachment holds the row of its node, so it may arrive before the node and
    outlast it.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._csi_rows: dict[str, int] = {}
        self._attached: dict[str, tuple[AttachedVolume | None, int]] = {}
        self._follow: Mapping[type[Any], Callable[[str, Any], None]] = {
            PersistentVolumeClaim: self._claim_changed,
            PersistentVolume: self._volume_changed,
            StorageClass: self._class_changed,
            CSINode: self._csi_node_changed,
            VolumeAttachment: self._attachment_changed,
        }

    def update(self, obj: StorageObject) -> StorageChange:
        """Add or update an object."""
        old, is_news = self._state.storage.put(obj)
        if not is_news:
            return StorageChange(old, obj, ignored=True)
        self._changed(type(obj), obj.metadata.namespaced_name, obj)
        return StorageChange(old, obj)

    def remove(self, kind: type[StorageObject], key: str) -> StorageObject | None:
        """Remove a deleted object; None if it is unknown."""
        old = self._state.storage.drop(kind, key)
        if old is not None:
            self._changed(kind, key, None)
        return old

    def assumed(self) -> dict[str, str]:
        """Assumed object -> UID of the pod that assumed it; empty if it has been written."""
        storage = self._state.storage
        found = {f"claim {key}": each.pod_uid for key, each in storage.claims.assumptions()}
        volumes = storage.volumes.assumptions()
        return found | {f"volume {key}": each.pod_uid for key, each in volumes}

    def _changed(self, kind: type[Any], key: str, new: object) -> None:
        follow = self._follow.get(kind)
        if follow is not None:
            follow(key, new)
        self._state.generation += 1

    def _claim_changed(self, key: str, _claim: object) -> None:
        self._state.volume_use.claim_changed(key)

    def _volume_changed(self, name: str, _volume: object) -> None:
        for claim in self._state.storage.claims_of_volume(name):
            self._state.volume_use.claim_changed(claim)
        for attachment in self._state.storage.attachments_of(name):
            self._attachment_changed(attachment, self._state.storage.attachments[attachment])

    def _class_changed(self, name: str, _class: object) -> None:
        for claim in self._state.storage.claims_of_class(name):
            self._state.volume_use.claim_changed(claim)

    def _csi_node_changed(self, name: str, csi_node: CSINode | None) -> None:
        columns = self._state.columns
        row = self._csi_rows.get(name)
        if row is None:
            row = self._csi_rows[name] = columns.hold(name)
        self._state.csi_nodes.put(row, csi_node)
        if csi_node is None:
            columns.release(self._csi_rows.pop(name))

    def _attachment_changed(self, name: str, attachment: VolumeAttachment | None) -> None:
        use, columns = self._state.volume_use, self._state.columns
        before = self._attached.pop(name, None)
        if attachment is not None:
            volume = attached_volume(attachment, self._state.storage)
            row = columns.hold(attachment.spec.node_name)
            self._attached[name] = (volume, row)
            if volume is not None:
                use.add_attachment(volume, row)
        if before is not None:
            volume, row = before
            if volume is not None:
                use.remove_attachment(volume, row)
            columns.release(row)
