"""The use of storage on each node: claims, attached volumes and disks.

A node counts a volume once, however many of its pods use it. The volume of a claim may change while
pods use the claim (it gets bound); then the rows of these pods are counted again.

A volume is counted for its CSI driver, and as what kube-scheduler 1.12 counts it (`attach_limits`).
Each of the two is an `AttachedVolume`, with the name of a driver or of a limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from stowage.api.objects.volume import Volume, VolumeAttachment
from stowage.api.values.attach_limits import counted_as, limited_volume_of, limited_volume_of_pod
from stowage.api.values.csi_migration import (
    AttachedVolume,
    csi_driver_of,
    csi_volume_of,
    csi_volume_of_pod,
)
from stowage.api.values.volume_claims import claim_class, is_generated_for, used_claims
from stowage.state.arrays import BoolArray, Int64Array, extended
from stowage.state.pods.pod_info import PodInfo
from stowage.state.row_counts import RowCounts
from stowage.state.storage.objects import Storage


class ClaimUse(NamedTuple):
    """A claim as used by pods.

    Attributes:
        claim: ``namespace/name``.
        pod_uid: The pod that must own an ephemeral claim; empty for other claims.
    """

    claim: str
    pod_uid: str


class Disk(NamedTuple):
    """A disk that pods name directly; equal values are the same disk."""

    kind: str
    identity: tuple[str, ...]


class DiskUse(NamedTuple):
    """A disk of a pod, and whether the pod shares it with other readers."""

    disk: Disk
    is_shared: bool


Counted: TypeAlias = tuple[AttachedVolume, ...]
"""A volume by its CSI driver, by the limit of 1.12, by both, or not counted."""


class VolumeUse:
    """Per row: users of claims, attached volumes and disks.

    Args:
        storage: Maps claims to volumes.
        num_rows: The number of rows.
    """

    def __init__(self, storage: Storage, num_rows: int) -> None:
        self._storage = storage
        self._num_rows = num_rows
        self._users: RowCounts[ClaimUse] = RowCounts()
        self._by_pods: RowCounts[AttachedVolume] = RowCounts()
        self._by_attachments: RowCounts[AttachedVolume] = RowCounts()
        self._readers: RowCounts[Disk] = RowCounts()
        self._writers: RowCounts[Disk] = RowCounts()
        self._attached: dict[str, Int64Array] = {}
        self._own: set[str] = set()
        self._is_copy = False
        self._volumes: dict[ClaimUse, Counted] = {}
        self._uses_of: dict[str, set[ClaimUse]] = {}
        self._named: dict[str, set[str]] = {}

    def add_pod(self, pod: PodInfo, row: int) -> None:
        """Add the volumes of a pod to a row."""
        self._change_pod(pod, row, 1)

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        """Remove the volumes of a pod from a row."""
        self._change_pod(pod, row, -1)

    def claim_changed(self, claim: str) -> None:
        """Update the rows that use a claim after it, its volume or its class changed."""
        for use in tuple(self._uses_of.get(claim, ())):
            old, new = self._volumes[use], self._resolve(use)
            if old == new:
                continue
            self._volumes[use] = new
            for row in self._users.at(use):
                self._count_all(old, row, -1)
                self._count_all(new, row, 1)

    def add_attachment(self, volume: AttachedVolume, row: int) -> None:
        """Add a VolumeAttachment to a row; it counts whether or not pods use the volume."""
        self._count(self._by_attachments, self._by_pods, volume, row, 1)

    def remove_attachment(self, volume: AttachedVolume, row: int) -> None:
        """Remove a VolumeAttachment from a row."""
        self._count(self._by_attachments, self._by_pods, volume, row, -1)

    def is_claim_used(self, claim: str, exists: BoolArray) -> bool:
        """Whether a pod on a node that `exists` uses the claim (``IsPVCUsedByPods``)."""
        return any(bool(exists[row]) for row in self._users.at(ClaimUse(claim, "")))

    def volumes_of(self, pod: PodInfo) -> set[AttachedVolume]:
        """The volumes that a pod attaches, by CSI driver and by limit of 1.12."""
        found = {volume for use in claim_uses(pod) for volume in self._volumes_of(use)}
        return found.union(*map(_inline_volumes, pod.volumes))

    def attached(self, driver: str) -> Int64Array | None:
        """``int64[rows]``: number of distinct volumes of a driver on each row; None if none.

        Args:
            driver: A CSI driver, or a limit of 1.12.
        """
        return self._attached.get(driver)

    def rows_with(self, volume: AttachedVolume) -> Int64Array:
        """``int64[]``: the rows where pods use a volume."""
        return self._by_pods.rows(volume)

    def is_attached(self, volume: AttachedVolume, row: int) -> bool:
        """Whether a VolumeAttachment attaches a volume to a row."""
        return row in self._by_attachments.at(volume)

    def users_of_names(self, names: Iterable[str]) -> Int64Array:
        """``int64[]``: the rows with pods that use a claim of such a name, in any namespace."""
        uses = (ClaimUse(claim, "") for name in names for claim in self._named.get(name, ()))
        rows = {row for use in uses for row in self._users.at(use)}
        return np.fromiter(rows, dtype=np.int64, count=len(rows))

    def conflicts(self, volumes: Iterable[Volume]) -> Int64Array | None:
        """``int64[rows]``: number of conflicting uses of the disks among `volumes`.

        It is the sum of `disk_conflicts` over the pods of each row; None if there are none.
        """
        conflicts: Int64Array | None = None
        for use in disk_uses(volumes):
            tables = (self._writers,) if use.is_shared else (self._writers, self._readers)
            for table in tables:
                counts = table.at(use.disk)
                if counts and conflicts is None:
                    conflicts = np.zeros(self._num_rows, dtype=np.int64)
                for row, count in counts.items():
                    conflicts[row] += count  # type: ignore[index]  # made above
        return conflicts

    def grow(self, num_rows: int) -> None:
        """Extend the arrays to `num_rows`."""
        self._num_rows = num_rows
        for driver, counts in self._attached.items():
            self._attached[driver] = extended(counts, num_rows)

    def with_changes(
        self, removed: Iterable[PodInfo], added: Iterable[PodInfo], row: int
    ) -> VolumeUse:
        """A copy with other pods on one row; costs time in proportion to these pods."""
        changed = self._copy()
        for pod in added:
            changed.add_pod(pod, row)
        for pod in removed:
            changed.remove_pod(pod, row)
        return changed

    def tables(self) -> Mapping[str, RowCounts[Any]]:
        """The counts by key and row, for validation."""
        return {
            "users of claims": self._users,
            "volumes of pods": self._by_pods,
            "volumes of attachments": self._by_attachments,
            "readers of disks": self._readers,
            "writers of disks": self._writers,
        }

    def attached_counts(self) -> dict[tuple[str, int], int]:
        """The number of attached volumes by driver and row, without zeros; for validation."""
        return {
            (driver, row): int(counts[row])
            for driver, counts in self._attached.items()
            for row in np.flatnonzero(counts).tolist()
        }

    def _change_pod(self, pod: PodInfo, row: int, sign: int) -> None:
        for use in claim_uses(pod):
            self._use(use, row, sign)
        for volume in pod.volumes:
            self._count_all(_inline_volumes(volume), row, sign)
        for disk, is_shared in disk_uses(pod.volumes):
            (self._readers if is_shared else self._writers).add(disk, row, sign)

    def _use(self, use: ClaimUse, row: int, sign: int) -> None:
        volumes = self._volumes_of(use)
        before = row in self._users.at(use)
        after = self._users.add(use, row, sign) > 0
        if not self._is_copy:
            self._index_use(use, volumes)
        if before != after:
            self._count_all(volumes, row, sign)

    def _index_use(self, use: ClaimUse, volumes: Counted) -> None:
        if self._users.at(use):
            if use not in self._volumes:
                self._volumes[use] = volumes
                self._uses_of.setdefault(use.claim, set()).add(use)
                self._named.setdefault(_name_of(use.claim), set()).add(use.claim)
            return
        del self._volumes[use]
        uses = self._uses_of[use.claim]
        uses.discard(use)
        if not uses:
            del self._uses_of[use.claim]
            name = _name_of(use.claim)
            self._named[name].discard(use.claim)
            if not self._named[name]:
                del self._named[name]

    def _count_all(self, volumes: Counted, row: int, sign: int) -> None:
        """Count the volumes of a pod."""
        for volume in volumes:
            self._count(self._by_pods, self._by_attachments, volume, row, sign)

    def _count(
        self,
        table: RowCounts[AttachedVolume],
        other: RowCounts[AttachedVolume],
        volume: AttachedVolume,
        row: int,
        sign: int,
    ) -> None:
        """Count a volume of a row in `table`; it is attached while `table` or `other` has it."""
        count = table.add(volume, row, sign)
        if row not in other.at(volume) and count == (1 if sign > 0 else 0):
            self._attached_of(volume.driver)[row] += sign

    def _attached_of(self, driver: str) -> Int64Array:
        """The writable counts of a driver."""
        counts = self._attached.get(driver)
        if counts is None:
            counts = np.zeros(self._num_rows, dtype=np.int64)
        elif driver not in self._own:
            counts = counts.copy()
        else:
            return counts
        self._own.add(driver)
        self._attached[driver] = counts
        return counts

    def _volumes_of(self, use: ClaimUse) -> Counted:
        return self._volumes[use] if use in self._volumes else self._resolve(use)

    def _resolve(self, use: ClaimUse) -> Counted:
        """``getCSIDriverInfo``: the bound volume, or else a unique name with the class's driver."""
        claim = self._storage.claims.get_api_object(use.claim)
        if claim is None or (use.pod_uid and not is_generated_for(claim, use.pod_uid)):
            return ()
        volume = self._storage.volumes.get_api_object(claim.spec.volume_name)
        if volume is not None:
            return _present(csi_volume_of(volume), limited_volume_of(volume))
        storage_class = self._storage.classes.get(claim_class(claim))
        if storage_class is None or not storage_class.provisioner:
            return ()
        provisioner = storage_class.provisioner
        drivers = (csi_driver_of(provisioner), counted_as(provisioner))
        # No volume handle contains a zero byte, so the name is unique.
        return tuple(AttachedVolume(driver, f"\0{use.claim}") for driver in drivers if driver)

    def _copy(self) -> VolumeUse:
        twin = object.__new__(VolumeUse)
        twin.__dict__.update(self.__dict__)
        twin._is_copy = True
        twin._own = set()
        twin._users = RowCounts(self._users)
        twin._by_pods = RowCounts(self._by_pods)
        twin._by_attachments = self._by_attachments
        twin._readers = RowCounts(self._readers)
        twin._writers = RowCounts(self._writers)
        twin._attached = dict(self._attached)
        return twin


def _name_of(claim: str) -> str:
    return claim.partition("/")[2]


def _inline_volumes(volume: Volume) -> Counted:
    if volume.persistent_volume_claim is not None:
        return ()  # a volume has one source
    return _present(csi_volume_of_pod(volume), limited_volume_of_pod(volume))


def _present(*volumes: AttachedVolume | None) -> Counted:
    return tuple(volume for volume in volumes if volume is not None)


def claim_uses(pod: PodInfo) -> Iterator[ClaimUse]:
    """The claims of a pod; an ephemeral claim counts only if the pod owns it."""
    for claim in used_claims(pod.volumes, pod.name):
        owner = pod.uid if claim.is_ephemeral else ""
        yield ClaimUse(f"{pod.namespace}/{claim.name}", owner)


def disk_uses(volumes: Iterable[Volume]) -> Iterator[DiskUse]:
    """The disks that pods cannot share, or only for reading; a Ceph image once per monitor."""
    for volume in volumes:
        if (gce := volume.gce_persistent_disk) is not None:
            yield DiskUse(Disk("gce", (gce.pd_name,)), gce.read_only)
        if (ebs := volume.aws_elastic_block_store) is not None:
            yield DiskUse(Disk("ebs", (ebs.volume_id,)), is_shared=False)
        if (iscsi := volume.iscsi) is not None:
            yield DiskUse(Disk("iscsi", (iscsi.iqn,)), iscsi.read_only)
        if (rbd := volume.rbd) is not None:
            for monitor in dict.fromkeys(rbd.monitors):
                yield DiskUse(Disk("rbd", (monitor, rbd.pool, rbd.image)), rbd.read_only)


def disk_conflicts(volumes: Iterable[Volume], others: Iterable[Volume]) -> int:
    """Number of conflicting pairs of disks of two pods (``isVolumeConflict``)."""
    taken = list(disk_uses(others))
    return sum(
        use.disk == other.disk and not (use.is_shared and other.is_shared)
        for use in disk_uses(volumes)
        for other in taken
    )


def attached_volume(attachment: VolumeAttachment | None, storage: Storage) -> AttachedVolume | None:
    """The volume that an attachment attaches; None if it is not a CSI volume."""
    if attachment is None or not attachment.spec.attacher:
        return None
    name = attachment.spec.source.persistent_volume_name
    volume = None if name is None else storage.volumes.get_api_object(name)
    if volume is None or volume.spec.csi is None:
        return None
    return AttachedVolume(attachment.spec.attacher, volume.spec.csi.volume_handle)
