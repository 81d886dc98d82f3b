"""Migration of in-tree volumes to CSI volumes (``csi-translation-lib`` v1.36)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.objects.volume import (
    AWSElasticBlockStoreVolumeSource,
    CSINode,
    GCEPersistentDiskVolumeSource,
    PersistentVolume,
    Volume,
    VolumeNodeAffinity,
)

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
ZONE_BETA = "failure-domain.beta.kubernetes.io/zone"
REGION_BETA = "failure-domain.beta.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
_ZONE_DELIMITER = "__"
_UNSPECIFIED = "UNSPECIFIED"
_EBS_ID = re.compile(r"vol-[^/]*")


class AttachedVolume(NamedTuple):
    """A volume attached to a node; equal values are the same volume and count once.

    Attributes:
        driver: The name of the CSI driver, or of a limit (`attach_limits`).
        handle: The driver's name for the volume.
    """

    driver: str
    handle: str


class InTreePlugin(NamedTuple):
    """A kind of in-tree volume.

    Attributes:
        field: The field of the source in pods and persistent volumes.
        driver: The CSI driver to which it is migrated.
        topology_key: The driver's node label for zones; empty if it has none.
        handle: (source, zone label of the volume) -> the driver's name for the volume, if any.
        is_counted: Whether its volumes count against the driver's limit.
    """

    field: str
    driver: str
    topology_key: str
    handle: Callable[[Any, str], str | None]
    is_counted: bool = True


def csi_volume_of_pod(volume: Volume) -> AttachedVolume | None:
    """The CSI volume of an inline volume on nodes with a CSINode; None if there is none."""
    found = _plugin_of(volume)
    if found is None or not found[1].is_counted:
        return None
    plugin = found[1]
    handle = plugin.handle(getattr(volume, plugin.field), "")
    return AttachedVolume(plugin.driver, handle) if handle else None


def csi_volume_of(volume: PersistentVolume) -> AttachedVolume | None:
    """The CSI volume of a persistent volume on nodes with a CSINode; None if there is none."""
    spec = volume.spec
    if spec.csi is not None:
        driver, handle = spec.csi.driver, spec.csi.volume_handle
        return AttachedVolume(driver, handle) if driver and handle else None
    found = _plugin_of(spec)
    if found is None or not found[1].is_counted:
        return None
    plugin, labels = found[1], volume.metadata.labels
    named = plugin.handle(
        getattr(spec, plugin.field), labels.get(ZONE_BETA) or labels.get(ZONE, "")
    )
    return AttachedVolume(plugin.driver, named) if named else None


def csi_driver_of(provisioner: str) -> str:
    """The CSI driver of a provisioner; empty if its volumes do not count."""
    plugin = IN_TREE_PLUGINS.get(provisioner)
    if plugin is None:
        return provisioner
    return plugin.driver if plugin.is_counted else ""


def is_migratable(volume: Volume) -> bool:
    """Whether an inline volume is of a migrated kind."""
    return _plugin_of(volume) is not None


def migrated_plugin_of(volume: PersistentVolume) -> str | None:
    """The in-tree plugin of a persistent volume, if it is of a migrated kind."""
    found = _plugin_of(volume.spec)
    return found[0] if found is not None and found[1].is_counted else None


def migrated_plugins(csi_node: CSINode) -> frozenset[str]:
    """The in-tree plugins that are migrated on a node."""
    text = csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "")
    return frozenset(text.split(",")) if text else frozenset()


def migrated_affinity(volume: PersistentVolume) -> VolumeNodeAffinity | None:
    """The node affinity of a persistent volume for nodes on which its plugin is migrated.

    ``translateTopologyFromInTreeToCSI``: zones move to the driver's topology label, or come from
    the zone label of the volume; the beta region label becomes the region label.
    """
    found = _plugin_of(volume.spec)
    affinity = volume.spec.node_affinity
    if found is None or not found[1].topology_key:
        return affinity
    topology_key, labels = found[1].topology_key, volume.metadata.labels
    required = affinity.required if affinity is not None else None
    terms = required.node_selector_terms if required is not None else ()
    zone_key, is_beta = _zone_key(terms, labels)
    if _values_of(terms, zone_key):
        terms = _renamed(terms, zone_key, topology_key)
    elif zone_key in labels:
        terms = _with_zones(terms, topology_key, labels[zone_key])
    if is_beta and _values_of(terms, REGION_BETA):
        terms = _renamed(terms, REGION_BETA, REGION)
    if required is None and not terms:
        return affinity
    return VolumeNodeAffinity(NodeSelector(node_selector_terms=terms))


Terms = tuple[NodeSelectorTerm, ...]


def _zone_key(terms: Terms, labels: Mapping[str, str]) -> tuple[str, bool]:
    """The zone label of a volume, and whether the beta labels are in use."""
    named = {each.key for term in terms for each in term.match_expressions}
    for keys in (named, labels.keys()):
        if ZONE in keys:
            return ZONE, False
        if ZONE_BETA in keys:
            return ZONE_BETA, True
    return ZONE, False


def _values_of(terms: Terms, key: str) -> bool:
    return any(each.key == key and each.values for term in terms for each in term.match_expressions)


def _renamed(terms: Terms, old: str, new: str) -> Terms:
    return tuple(
        replace(
            term,
            match_expressions=tuple(
                replace(each, key=new) if each.key == old else each
                for each in term.match_expressions
            ),
        )
        for term in terms
    )


def _with_zones(terms: Terms, key: str, label: str) -> Terms:
    zones = sorted({zone.strip() for zone in label.split(_ZONE_DELIMITER)} - {""})
    if not zones:
        return terms
    topology = NodeSelectorRequirement(key=key, operator="In", values=tuple(zones))
    return tuple(
        replace(term, match_expressions=(*term.match_expressions, topology))
        for term in terms or (NodeSelectorTerm(),)
    )


def _plugin_of(source: object) -> tuple[str, InTreePlugin] | None:
    """The in-tree plugin of a volume's or persistent volume's source, with its name."""
    for name, plugin in IN_TREE_PLUGINS.items():
        if getattr(source, plugin.field) is not None:
            return name, plugin
    return None


def _ebs_handle(source: AWSElasticBlockStoreVolumeSource, _zones: str) -> str | None:
    """``vol-1`` and ``aws://zone/vol-1`` are the same volume."""
    if not source.volume_id.startswith("aws://"):
        return source.volume_id
    handle = urlsplit(source.volume_id).path.strip("/")
    return handle if _EBS_ID.fullmatch(handle) else None


def _gce_handle(source: GCEPersistentDiskVolumeSource, label: str) -> str | None:
    zones = label.split(_ZONE_DELIMITER) if label else []
    if len(zones) < 2:
        place = f"zones/{zones[0] if zones else _UNSPECIFIED}"
        return f"projects/{_UNSPECIFIED}/{place}/disks/{source.pd_name}"
    regions = {tuple(zone.split("-")[:2]) for zone in zones if zone.count("-") == 2}
    if len(regions) != 1 or any(zone.count("-") != 2 for zone in zones):
        return None
    return f"projects/{_UNSPECIFIED}/regions/{'-'.join(regions.pop())}/disks/{source.pd_name}"


def _volume_id(source: Any, _zones: str) -> str | None:
    handle: str = source.volume_id
    return handle


def _no_handle(_source: object, _zones: str) -> str | None:
    return None


IN_TREE_PLUGINS: Mapping[str, InTreePlugin] = {
    "kubernetes.io/aws-ebs": InTreePlugin(
        "aws_elastic_block_store", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone", _ebs_handle
    ),
    "kubernetes.io/gce-pd": InTreePlugin(
        "gce_persistent_disk", "pd.csi.storage.gke.io", "topology.gke.io/zone", _gce_handle
    ),
    "kubernetes.io/cinder": InTreePlugin(
        "cinder",
        "cinder.csi.openstack.org",
        "topology.cinder.csi.openstack.org/zone",
        _volume_id,
    ),
    "kubernetes.io/azure-disk": InTreePlugin(
        "azure_disk", "disk.csi.azure.com", "", lambda source, _zones: str(source.disk_uri)
    ),
    "kubernetes.io/portworx-volume": InTreePlugin(
        "portworx_volume", "pxd.portworx.com", "", _volume_id
    ),
    # Migrated, but not per node, and its volumes do not count.
    "kubernetes.io/azure-file": InTreePlugin(
        "azure_file", "file.csi.azure.com", "", _no_handle, is_counted=False
    ),
    "kubernetes.io/vsphere-volume": InTreePlugin(
        "vsphere_volume", "csi.vsphere.vmware.com", "", _no_handle, is_counted=False
    ),
}
"""Name of an in-tree plugin, also as a provisioner -> its migration."""
