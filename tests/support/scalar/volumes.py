"""The volume plugins for one node, in plain Python, with kube-scheduler's loops."""

from __future__ import annotations

import math

from stowage.api.decoding.errors import SelectorError
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.volume import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    Volume,
    VolumeAttachment,
    VolumeNodeAffinity,
)
from stowage.api.values.csi_migration import csi_volume_of, csi_volume_of_pod, migrated_affinity
from stowage.api.values.node_affinity import compile_node_selector
from stowage.api.values.quantity import quantity_value
from stowage.api.values.selectors import compile_label_selector
from tests.support.scalar.cluster import PlainCluster
from tests.support.scalar.node_filters import ACCEPTED, Answer

CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
UNMATCHED = "node(s) didn't find available persistent volumes to bind"
SHORT = "node(s) did not have enough free storage"
LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)
_BOUND, _SELECTED = "pv.kubernetes.io/bind-completed", "volume.kubernetes.io/selected-node"


def volume_restrictions(pod: Pod, node: Node, cluster: PlainCluster) -> Answer:
    """Conflicts of disks, then claims with ReadWriteOncePod."""
    for other in cluster.pods_on(node):
        if shares_a_disk(pod, other):
            return {"node(s) had no available disk"}, False
    for name in claims_for_one_pod(pod, cluster):
        if any(
            other.metadata.namespace == pod.metadata.namespace and name in names_of_claims(other)
            for other, _ in cluster.placed()
        ):
            return {IN_USE}, False
    return ACCEPTED


def node_volume_limits(pod: Pod, node: Node, cluster: PlainCluster) -> Answer:
    """Volumes that the node's pods use, attached volumes, and the new ones."""
    csi_node = cluster.stored(CSINode, node.metadata.name)
    if csi_node is None:
        return ACCEPTED
    new = _volumes(pod, cluster)
    used: dict[tuple[str, str], str] = {}
    for other in cluster.pods_on(node):
        used |= _volumes(other, cluster)
    attached = dict(used)
    for attachment in cluster.all_stored(VolumeAttachment):
        volume = cluster.stored(
            PersistentVolume, attachment.spec.source.persistent_volume_name or ""
        )
        if attachment.spec.node_name == node.metadata.name and volume and volume.spec.csi:
            attacher = attachment.spec.attacher
            attached[attacher, volume.spec.csi.volume_handle] = attacher
    for driver in csi_node.spec.drivers:
        if driver.allocatable is None or driver.allocatable.count is None:
            continue
        num_new = sum(each == driver.name for key, each in new.items() if key not in used)
        num_attached = sum(each == driver.name for each in attached.values())
        if num_new and num_new + num_attached > driver.allocatable.count:
            return {"node(s) exceed max volume count"}, False
    return ACCEPTED


def scaled_volume_limits(pod: Pod, node: Node, cluster: PlainCluster) -> Answer:
    """Drivers that have to be on the node, by name, and then the limits."""
    csi_node = cluster.stored(CSINode, node.metadata.name)
    installed = {driver.name for driver in csi_node.spec.drivers} if csi_node else set()
    for name in sorted(set(_volumes(pod, cluster).values())):
        driver = cluster.stored(CSIDriver, name)
        if driver and driver.spec.prevent_pod_scheduling_if_missing and name not in installed:
            return {f"{name} CSI driver is not installed on the node"}, False
    return node_volume_limits(pod, node, cluster)


def volume_zone(pod: Pod, node: Node, cluster: PlainCluster) -> Answer:
    """Each zone label of each bound volume must contain the node's value."""
    labels = node.metadata.labels
    beta = "failure-domain.beta.kubernetes.io/"
    successor = "topology.kubernetes.io/"
    keys = [f"{prefix}{what}" for prefix in (beta, successor) for what in ("zone", "region")]
    if not any(key in labels for key in keys):
        return ACCEPTED
    for name in names_of_claims(pod):
        claim = cluster.stored(PersistentVolumeClaim, f"{pod.metadata.namespace}/{name}")
        volume = cluster.stored(PersistentVolume, claim.spec.volume_name) if claim else None
        for key in keys:
            text = volume.metadata.labels.get(key) if volume else None
            values = [value.strip() for value in (text or "").split("__")]
            if not all(values):
                continue
            has = labels.get(key, labels.get(key.replace(beta, successor)))
            if has not in values:
                return {"node(s) had no available volume zone"}, True
    return ACCEPTED


def volume_binding(pod: Pod, node: Node, cluster: PlainCluster) -> Answer:
    """Bound claims by their volume's affinity; others by free volumes or by provisioning."""
    reasons: set[str] = set()
    claims = [
        cluster.stored(PersistentVolumeClaim, f"{pod.metadata.namespace}/{name}")
        for name in names_of_claims(pod)
    ]
    present = [claim for claim in claims if claim is not None]
    delayed = [claim for claim in present if _BOUND not in claim.metadata.annotations]
    for claim in present:
        if claim in delayed:
            continue
        volume = cluster.stored(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            reasons.add(LOST)
            break
        if not _reaches(_affinity(volume, node, cluster), node):
            reasons.add(CONFLICT)
            break
    return (reasons | _delayed(delayed, node, cluster), True) if present else ACCEPTED


def _delayed(claims: list[PersistentVolumeClaim], node: Node, cluster: PlainCluster) -> set[str]:
    if any(
        claim.metadata.annotations.get(_SELECTED, node.metadata.name) != node.metadata.name
        for claim in claims
    ):
        return {UNMATCHED}
    for claim in _shared_out(claims, node, cluster)[1]:
        storage_class = cluster.stored(StorageClass, claim.spec.storage_class_name or "")
        assert storage_class is not None
        if storage_class.provisioner == "kubernetes.io/no-provisioner":
            return {UNMATCHED}
        terms = storage_class.allowed_topologies
        if terms and not any(
            all(node.metadata.labels.get(each.key) in each.values for each in term)
            for term in (term.match_label_expressions for term in terms)
            if term
        ):
            return {UNMATCHED}
        if not _has_room(claim, storage_class, node, cluster):
            return {SHORT}
    return set()


def _shared_out(
    claims: list[PersistentVolumeClaim], node: Node, cluster: PlainCluster
) -> tuple[list[tuple[PersistentVolumeClaim, PersistentVolume]], list[PersistentVolumeClaim]]:
    """The claims that get a volume on the node, and those whose volume has to be made."""
    to_make = [claim for claim in claims if _SELECTED in claim.metadata.annotations]
    given: list[tuple[PersistentVolumeClaim, PersistentVolume]] = []
    rest = [claim for claim in claims if claim not in to_make]
    for claim in sorted(rest, key=_size):
        found = _find(claim, node, cluster, {volume.metadata.name for _, volume in given})
        if found is None:
            to_make.append(claim)
        else:
            given.append((claim, found))
    return given, to_make


def capacity_score(pod: Pod, node: Node, cluster: PlainCluster) -> int:
    """The default shape: 100 where the pod's volumes take nothing, 0 where they take all."""
    keys = [f"{pod.metadata.namespace}/{name}" for name in names_of_claims(pod)]
    claims = [cluster.stored(PersistentVolumeClaim, key) for key in keys]
    delayed = [each for each in claims if each and _BOUND not in each.metadata.annotations]
    given, to_make = _shared_out(delayed, node, cluster)
    asked: dict[str | None, int] = {}
    there: dict[str | None, int] = {}
    for claim, volume in given:
        name = claim.spec.storage_class_name
        asked[name] = asked.get(name, 0) + _size(claim)
        there[name] = there.get(name, 0) + _capacity(volume)
    for claim in () if given else to_make:
        name = claim.spec.storage_class_name
        storage_class = cluster.stored(StorageClass, name or "")
        assert storage_class is not None
        rooms = _rooms(claim, storage_class, node, cluster)
        if rooms:
            asked[name] = asked.get(name, 0) + _size(claim)
            there[name] = max(rooms)
    scores = []
    for name, size in asked.items():
        is_full = there[name] == 0 or size > there[name]
        scores.append(100 - (100 if is_full else size * 100 // there[name]))
    return math.floor(sum(scores) / len(scores) + 0.5) if scores else 0


def _find(
    claim: PersistentVolumeClaim, node: Node, cluster: PlainCluster, taken: set[str]
) -> PersistentVolume | None:
    """``FindMatchingVolume``, over the volumes in the order of their names."""
    smallest = None
    for volume in sorted(cluster.all_stored(PersistentVolume), key=lambda v: v.metadata.name):
        reference = volume.spec.claim_ref
        is_mine = reference is not None and (
            (reference.namespace, reference.name, reference.uid)
            == ("default", claim.metadata.name, claim.metadata.uid)
        )
        if (
            volume.metadata.name in taken
            or volume.spec.storage_class_name != claim.spec.storage_class_name
            or (reference is not None and not is_mine)
            or _capacity(volume) < _size(claim)
            or volume.metadata.deletion_timestamp
            or (volume.spec.volume_mode or "Filesystem") != (claim.spec.volume_mode or "Filesystem")
        ):
            continue
        is_reached = _reaches(volume.spec.node_affinity, node)
        if is_mine:
            return volume if is_reached else None
        fits = volume.status.phase == "Available" and is_reached
        fits &= set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        if claim.spec.selector is not None:
            selector = compile_label_selector(claim.spec.selector)
            fits &= selector.matches(volume.metadata.labels)
        if fits and (smallest is None or _capacity(volume) < _capacity(smallest)):
            smallest = volume
    return smallest


def _has_room(
    claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node, cluster: PlainCluster
) -> bool:
    return _rooms(claim, storage_class, node, cluster) != []


def _rooms(
    claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node, cluster: PlainCluster
) -> list[int] | None:
    """The capacities that a volume can be made from; None if the driver publishes none."""
    driver = cluster.stored(CSIDriver, storage_class.provisioner)
    if driver is None or not driver.spec.storage_capacity:
        return None
    rooms = []
    for capacity in cluster.all_stored(CSIStorageCapacity):
        limit = capacity.maximum_volume_size or capacity.capacity
        if capacity.storage_class_name != storage_class.metadata.name or limit is None:
            continue
        selector = compile_label_selector(capacity.node_topology)
        if quantity_value(limit) >= _size(claim) and selector.matches(node.metadata.labels):
            rooms.append(quantity_value(capacity.capacity or 0))
    return rooms


def _affinity(
    volume: PersistentVolume, node: Node, cluster: PlainCluster
) -> VolumeNodeAffinity | None:
    csi_node = cluster.stored(CSINode, node.metadata.name)
    text = csi_node.metadata.annotations if csi_node else {}
    migrated = text.get("storage.alpha.kubernetes.io/migrated-plugins", "").split(",")
    if volume.spec.aws_elastic_block_store is not None and "kubernetes.io/aws-ebs" in migrated:
        return migrated_affinity(volume)
    return volume.spec.node_affinity


def _reaches(affinity: VolumeNodeAffinity | None, node: Node) -> bool:
    if affinity is None or affinity.required is None:
        return True
    try:
        return compile_node_selector(affinity.required).matches(node.metadata.labels, "")
    except SelectorError:
        return False


def _volumes(pod: Pod, cluster: PlainCluster) -> dict[tuple[str, str], str]:
    """(driver, handle) -> driver of all volumes that must be attached for a pod."""
    found: dict[tuple[str, str], str] = {}
    for volume in pod.spec.volumes:
        inline = csi_volume_of_pod(volume)
        if inline is not None:
            found[inline] = inline.driver
    for name in names_of_claims(pod):
        key = f"{pod.metadata.namespace}/{name}"
        claim = cluster.stored(PersistentVolumeClaim, key)
        if claim is None:
            continue
        persistent = cluster.stored(PersistentVolume, claim.spec.volume_name)
        storage_class = cluster.stored(StorageClass, claim.spec.storage_class_name or "")
        if persistent is not None:
            counted = csi_volume_of(persistent)
            if counted is not None:
                found[counted] = counted.driver
        elif storage_class is not None:
            found[storage_class.provisioner, f"unbound {key}"] = storage_class.provisioner
    return found


def names_of_claims(pod: Pod) -> list[str]:
    """The names of the claims in the pod's own spec."""
    return [
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    ]


def claims_for_one_pod(pod: Pod, cluster: PlainCluster) -> set[str]:
    """The names of the pod's ReadWriteOncePod claims."""
    claims = {
        name: cluster.stored(PersistentVolumeClaim, f"{pod.metadata.namespace}/{name}")
        for name in names_of_claims(pod)
    }
    return {
        name
        for name, claim in claims.items()
        if claim is not None and "ReadWriteOncePod" in claim.spec.access_modes
    }


def has_disks(pod: Pod) -> bool:
    """Whether a pod uses an in-tree disk directly."""
    return any(_same_disk(each, each) or _is_read_only_disk(each) for each in pod.spec.volumes)


def shares_a_disk(pod: Pod, other: Pod) -> bool:
    """Whether two pods use a disk that they cannot share."""
    return any(_same_disk(a, b) for a in pod.spec.volumes for b in other.spec.volumes)


def _is_read_only_disk(volume: Volume) -> bool:
    disks = (volume.gce_persistent_disk, volume.iscsi, volume.rbd)
    return any(disk is not None and disk.read_only for disk in disks)


def _same_disk(one: Volume, other: Volume) -> bool:
    """``isVolumeConflict``."""
    if one.gce_persistent_disk and other.gce_persistent_disk:
        a, b = one.gce_persistent_disk, other.gce_persistent_disk
        return a.pd_name == b.pd_name and not (a.read_only and b.read_only)
    if one.aws_elastic_block_store and other.aws_elastic_block_store:
        return one.aws_elastic_block_store.volume_id == other.aws_elastic_block_store.volume_id
    if one.iscsi and other.iscsi:
        return one.iscsi.iqn == other.iscsi.iqn and not (
            one.iscsi.read_only and other.iscsi.read_only
        )
    if one.rbd and other.rbd:
        same = (one.rbd.pool, one.rbd.image) == (other.rbd.pool, other.rbd.image)
        shares = bool(set(one.rbd.monitors) & set(other.rbd.monitors))
        return same and shares and not (one.rbd.read_only and other.rbd.read_only)
    return False


def _size(claim: PersistentVolumeClaim) -> int:
    return quantity_value(claim.spec.resources.requests["storage"])


def _capacity(volume: PersistentVolume) -> int:
    return quantity_value(volume.spec.capacity["storage"])
