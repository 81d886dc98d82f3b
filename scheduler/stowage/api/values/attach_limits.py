"""Limits of attached volumes as kube-scheduler 1.12 names them: resources of nodes.

A volume counts against the resource of its kind. EBS volumes, GCE disks and Azure disks have a
resource of their own, and so has each CSI driver. Nothing is migrated to CSI.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from stowage.api.objects.volume import PersistentVolume, PersistentVolumeSpec, Volume
from stowage.api.values.csi_migration import AttachedVolume
from stowage.api.values.resource_names import ATTACHABLE_VOLUMES_PREFIX

EBS_LIMIT = f"{ATTACHABLE_VOLUMES_PREFIX}aws-ebs"
GCE_LIMIT = f"{ATTACHABLE_VOLUMES_PREFIX}gce-pd"
AZURE_LIMIT = f"{ATTACHABLE_VOLUMES_PREFIX}azure-disk"
CSI_LIMIT_PREFIX = f"{ATTACHABLE_VOLUMES_PREFIX}csi-"

_OF_PROVISIONER: Mapping[str, str] = {
    "kubernetes.io/aws-ebs": EBS_LIMIT,
    "kubernetes.io/gce-pd": GCE_LIMIT,
    "kubernetes.io/azure-disk": AZURE_LIMIT,
}
_MAX_NAME_LENGTH = 63
_KEPT_CHARACTERS = 23
_HASH_DIGITS = 16


def csi_limit(driver: str) -> str:
    """The resource of a CSI driver; the name of a driver that is too long is shortened.

    ``GetCSIAttachLimitKey`` of 1.12.

    Examples:
        >>> csi_limit("ebs.csi.aws.com")
        'attachable-volumes-csi-ebs.csi.aws.com'
    """
    name = f"{CSI_LIMIT_PREFIX}{driver}"
    if len(name) < _MAX_NAME_LENGTH:
        return name
    digest = hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()
    return f"{CSI_LIMIT_PREFIX}{driver[:_KEPT_CHARACTERS]}{digest[:_HASH_DIGITS]}"


def counted_as(provisioner: str) -> str:
    """What volumes of a provisioner count as: a resource, or a prefix and the name of a driver."""
    return _OF_PROVISIONER.get(provisioner) or f"{CSI_LIMIT_PREFIX}{provisioner}"


def limited_volume_of_pod(volume: Volume) -> AttachedVolume | None:
    """What an inline volume counts as, and its name; None if it does not count."""
    return _disk(volume)


def limited_volume_of(volume: PersistentVolume) -> AttachedVolume | None:
    """What a persistent volume counts as, and its name; None if it does not count."""
    csi = volume.spec.csi
    if csi is None:
        return _disk(volume.spec)
    if not csi.driver or not csi.volume_handle:
        return None
    return AttachedVolume(counted_as(csi.driver), csi.volume_handle)


def _disk(source: Volume | PersistentVolumeSpec) -> AttachedVolume | None:
    if (ebs := source.aws_elastic_block_store) is not None:
        return AttachedVolume(EBS_LIMIT, ebs.volume_id)
    if (gce := source.gce_persistent_disk) is not None:
        return AttachedVolume(GCE_LIMIT, gce.pd_name)
    if (azure := source.azure_disk) is not None:
        return AttachedVolume(AZURE_LIMIT, azure.disk_name)
    return None
