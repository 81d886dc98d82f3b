"""Storage objects and their look-ups by key, class, claim and volume.

Only the cache writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar, cast

from stowage.api.objects.volume import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageObject,
    VolumeAttachment,
)
from stowage.api.values.quantity import quantity_nano_value
from stowage.api.values.volume_claims import claim_class, volume_capacity, volume_class
from stowage.state.changes import is_older
from stowage.state.storage.assume_cache import AssumeCache

T = TypeVar("T")
_NO_VOLUMES: Mapping[str, PersistentVolume] = MappingProxyType({})
_NO_CAPACITIES: Mapping[str, CSIStorageCapacity] = MappingProxyType({})


class Storage:
    """All storage objects.

    Attributes:
        claims: By ``namespace/name``.
        volumes: By name.
        classes: By name.
        csi_nodes: By name, which is the name of the node.
        csi_drivers: By name.
        attachments: By name.
    """

    def __init__(self) -> None:
        self.claims: AssumeCache[PersistentVolumeClaim] = AssumeCache(self._index_claim)
        self.volumes: AssumeCache[PersistentVolume] = AssumeCache(self._index_volume)
        self.classes: dict[str, StorageClass] = {}
        self.csi_nodes: dict[str, CSINode] = {}
        self.csi_drivers: dict[str, CSIDriver] = {}
        self.attachments: dict[str, VolumeAttachment] = {}
        self._capacities: dict[str, CSIStorageCapacity] = {}
        self._capacities_of_class: dict[str, dict[str, CSIStorageCapacity]] = {}
        # By class and capacity: volumes that are too small for a claim are not looked at.
        self._free: dict[tuple[str, str | int | float], dict[str, PersistentVolume]] = {}
        self._given: dict[tuple[str, str], dict[str, PersistentVolume]] = {}
        self._claims_of_volume: dict[str, dict[str, None]] = {}
        self._claims_of_class: dict[str, dict[str, None]] = {}
        self._attachments_of: dict[str, dict[str, None]] = {}
        self._plain: Mapping[type[Any], dict[str, Any]] = {
            StorageClass: self.classes,
            CSINode: self.csi_nodes,
            CSIDriver: self.csi_drivers,
            CSIStorageCapacity: self._capacities,
            VolumeAttachment: self.attachments,
        }
        self._after: Mapping[type[Any], Callable[[Any, Any], None]] = {
            CSIStorageCapacity: self._index_capacity,
            VolumeAttachment: self._index_attachment,
        }

    def put(self, obj: StorageObject) -> tuple[StorageObject | None, bool]:
        """Store an object; (the one known before, whether this one is newer)."""
        if isinstance(obj, PersistentVolumeClaim):
            return self.claims.put(obj)
        if isinstance(obj, PersistentVolume):
            return self.volumes.put(obj)
        by_name = self._plain[type(obj)]
        key = obj.metadata.namespaced_name
        old = by_name.get(key)
        if old is not None and old.metadata.uid == obj.metadata.uid:
            known = old.metadata.resource_version
            if old == obj or is_older(obj.metadata.resource_version, known):
                return old, False
        by_name[key] = obj
        self._on_change(old, obj)
        return old, True

    def drop(self, kind: type[StorageObject], key: str) -> StorageObject | None:
        """Remove a deleted object; None if it is unknown."""
        if kind is PersistentVolumeClaim:
            return self.claims.drop(key)
        if kind is PersistentVolume:
            return self.volumes.drop(key)
        old = self._plain[kind].pop(key, None)
        if old is not None:
            self._on_change(old, None)
        return cast("StorageObject | None", old)

    def assume(
        self,
        volumes: Iterable[PersistentVolume],
        claims: Iterable[PersistentVolumeClaim],
        pod_uid: str,
    ) -> None:
        """Assume that volumes and claims are written in this state for a pod.

        Raises:
            ValueError: The API server has shown a newer version of one of them.
        """
        for volume in volumes:
            self.volumes.assume(volume, pod_uid)
        for claim in claims:
            self.claims.assume(claim, pod_uid)

    def forget(
        self,
        volumes: Iterable[PersistentVolume],
        claims: Iterable[PersistentVolumeClaim],
        pod_uid: str,
        written: Collection[str],
    ) -> None:
        """Undo what was assumed for a pod; newer versions from the watches stay.

        Objects in `written` (names and ``namespace/name``) stay assumed until the watches show
        them: otherwise a written claim would count as unbound and get a second volume.
        kube-scheduler returns to the versions of its informers.
        """
        for volume in volumes:
            name = volume.metadata.name
            end = self.volumes.mark_written if name in written else self.volumes.restore
            end(name, pod_uid)
        for claim in claims:
            key = claim.metadata.namespaced_name
            finish = self.claims.mark_written if key in written else self.claims.restore
            finish(key, pod_uid)

    def names(self) -> dict[type[StorageObject], tuple[str, ...]]:
        """The names of all objects, by kind."""
        return {
            PersistentVolumeClaim: tuple(self.claims.keys()),
            PersistentVolume: tuple(self.volumes.keys()),
            **{kind: tuple(by_name) for kind, by_name in self._plain.items()},
        }

    def get_api_object(self, kind: type[StorageObject], name: str) -> StorageObject | None:
        """An object as last received from the API server."""
        if kind is PersistentVolumeClaim:
            return self.claims.get_api_object(name)
        if kind is PersistentVolume:
            return self.volumes.get_api_object(name)
        return cast("StorageObject | None", self._plain[kind].get(name))

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """A claim, as assumed if there is an assumption."""
        return self.claims.get(f"{namespace}/{name}")

    def volumes_for(
        self, claim: PersistentVolumeClaim, capacity_nano: int
    ) -> list[PersistentVolume]:
        """The volumes of a claim's class that are unbound, or bound to a claim of its name.

        Args:
            claim: The claim.
            capacity_nano: Their least capacity, in billionths of a byte.
        """
        meta, class_name = claim.metadata, claim_class(claim)
        given = self._given.get((meta.namespace, meta.name), _NO_VOLUMES).values()
        found = [
            volume
            for volume in given
            if volume_class(volume) == class_name
            and quantity_nano_value(volume_capacity(volume)) >= capacity_nano
        ]
        for (of_class, capacity), volumes in self._free.items():
            if of_class == class_name and quantity_nano_value(capacity) >= capacity_nano:
                found += volumes.values()
        return found

    def capacities_of(self, class_name: str) -> Iterable[CSIStorageCapacity]:
        """The CSIStorageCapacity objects of a class."""
        return self._capacities_of_class.get(class_name, _NO_CAPACITIES).values()

    def claims_of_volume(self, name: str) -> Sequence[str]:
        """The keys of claims that name a volume."""
        return tuple(self._claims_of_volume.get(name, ()))

    def claims_of_class(self, name: str) -> Sequence[str]:
        """The keys of claims of a class."""
        return tuple(self._claims_of_class.get(name, ()))

    def attachments_of(self, volume_name: str) -> Sequence[str]:
        """The names of attachments of a volume."""
        return tuple(self._attachments_of.get(volume_name, ()))

    def look_ups(self) -> dict[str, Any]:
        """The look-ups, for validation."""
        return {
            "class and capacity, free": self._free,
            "claim": self._given,
            "volume": self._claims_of_volume,
            "class of claim": self._claims_of_class,
            "class of capacity": self._capacities_of_class,
            "attached volume": self._attachments_of,
        }

    def _on_change(self, old: object, new: object) -> None:
        after = self._after.get(type(old if new is None else new))
        if after is not None:
            after(old, new)

    def _index_volume(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        for volume, is_new in ((old, False), (new, True)):
            if volume is None:
                continue
            reference = volume.spec.claim_ref
            if reference is None:
                size = (volume_class(volume), volume_capacity(volume))
                _index(self._free, size, volume.metadata.name, volume, is_new)
            else:
                key = (reference.namespace, reference.name)
                _index(self._given, key, volume.metadata.name, volume, is_new)

    def _index_claim(
        self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None
    ) -> None:
        for claim, is_new in ((old, False), (new, True)):
            if claim is None:
                continue
            key = claim.metadata.namespaced_name
            _index(self._claims_of_class, claim_class(claim), key, None, is_new)
            if claim.spec.volume_name:
                _index(self._claims_of_volume, claim.spec.volume_name, key, None, is_new)

    def _index_capacity(
        self, old: CSIStorageCapacity | None, new: CSIStorageCapacity | None
    ) -> None:
        for capacity, is_new in ((old, False), (new, True)):
            if capacity is not None:
                key = capacity.metadata.namespaced_name
                by_class = self._capacities_of_class
                _index(by_class, capacity.storage_class_name, key, capacity, is_new)

    def _index_attachment(self, old: VolumeAttachment | None, new: VolumeAttachment | None) -> None:
        for attachment, is_new in ((old, False), (new, True)):
            volume = None if attachment is None else attachment.spec.source.persistent_volume_name
            if attachment is not None and volume is not None:
                key = attachment.metadata.name
                _index(self._attachments_of, volume, key, None, is_new)


def _index(index: dict[Any, dict[str, T]], key: Any, name: str, value: T, is_there: bool) -> None:
    """Add an entry to a two-level look-up, or remove it."""
    if is_there:
        index.setdefault(key, {})[name] = value
        return
    entries = index[key]
    del entries[name]
    if not entries:
        del index[key]
