"""The volume limits of kube-scheduler 1.12 for one node, in plain Python."""

from __future__ import annotations

from collections.abc import Collection

from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.volume import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    Volume,
)
from tests.support.scalar.cluster import PlainCluster
from tests.support.scalar.volumes import names_of_claims

REASON = "node(s) exceed max volume count"
PROVISIONERS = {
    "aws-ebs": "kubernetes.io/aws-ebs",
    "gce-pd": "kubernetes.io/gce-pd",
    "azure-disk": "kubernetes.io/azure-disk",
}


def max_volume_count(
    kind: str, default: int, pod: Pod, node: Node, cluster: PlainCluster
) -> set[str]:
    """Disks of one cloud, in the pod itself and behind its claims."""
    new = disks(kind, pod, cluster)
    if not new:
        return set()
    used: set[str] = set()
    for other in cluster.pods_on(node):
        used |= disks(kind, other, cluster)
    limit = int(node.status.allocatable.get(f"attachable-volumes-{kind}", default))
    return {REASON} if len(used) + len(new - used) > limit else set()


def max_csi_volume_count(pod: Pod, node: Node, cluster: PlainCluster) -> set[str]:
    """Volumes of CSI drivers behind the pod's claims; `limits` of the node by driver."""
    limits: dict[str, int] = {}
    for resource, amount in node.status.allocatable.items():
        if resource.startswith("attachable-volumes-csi-"):
            limits[resource.removeprefix("attachable-volumes-csi-")] = int(amount)
    csi_node = cluster.stored(CSINode, node.metadata.name)
    for driver in csi_node.spec.drivers if csi_node else ():
        if driver.allocatable is not None and driver.allocatable.count is not None:
            limits[driver.name] = driver.allocatable.count
    new = csi_volumes(pod, cluster)
    used: set[tuple[str, str]] = set()
    for other in cluster.pods_on(node):
        used |= csi_volumes(other, cluster)
    for driver_name, limit in limits.items():
        num_new = _of_driver(driver_name, new - used)
        if num_new and num_new + _of_driver(driver_name, used) > limit:
            return {REASON}
    return set()


def disks(kind: str, pod: Pod, cluster: PlainCluster) -> set[str]:
    """The names of a pod's disks of one cloud; claims without a volume by their class."""
    found = {_disk(kind, volume) for volume in pod.spec.volumes}
    for key, claim in _claims(pod, cluster):
        persistent = cluster.stored(PersistentVolume, claim.spec.volume_name)
        if persistent is not None:
            found.add(_disk(kind, persistent.spec))
        elif _provisioner(claim, cluster) == PROVISIONERS[kind]:
            found.add(f"claim {key}")
    return {name for name in found if name is not None}


def csi_volumes(pod: Pod, cluster: PlainCluster) -> set[tuple[str, str]]:
    """(driver, handle) of the CSI volumes behind a pod's claims."""
    found = set()
    for key, claim in _claims(pod, cluster):
        persistent = cluster.stored(PersistentVolume, claim.spec.volume_name)
        if persistent is None:
            found.add((_provisioner(claim, cluster), f"claim {key}"))
        elif persistent.spec.csi is not None:
            found.add((persistent.spec.csi.driver, persistent.spec.csi.volume_handle))
    return found


def _of_driver(driver: str, volumes: Collection[tuple[str, str]]) -> int:
    return sum(each == driver for each, _ in volumes)


def _claims(pod: Pod, cluster: PlainCluster) -> list[tuple[str, PersistentVolumeClaim]]:
    keys = [f"{pod.metadata.namespace}/{name}" for name in names_of_claims(pod)]
    claims = [(key, cluster.stored(PersistentVolumeClaim, key)) for key in keys]
    return [(key, claim) for key, claim in claims if claim is not None]


def _provisioner(claim: PersistentVolumeClaim, cluster: PlainCluster) -> str:
    storage_class = cluster.stored(StorageClass, claim.spec.storage_class_name or "")
    return storage_class.provisioner if storage_class is not None else ""


def _disk(kind: str, source: Volume | PersistentVolumeSpec) -> str | None:
    ebs, gce = source.aws_elastic_block_store, source.gce_persistent_disk
    if kind == "aws-ebs":
        return None if ebs is None else ebs.volume_id
    if kind == "gce-pd":
        return None if gce is None else gce.pd_name
    return None if source.azure_disk is None else source.azure_disk.disk_name
