"""In-tree volumes count as volumes of their CSI drivers."""

from __future__ import annotations

import pytest

from stowage.api.objects.volume import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CinderVolumeSource,
    CSIVolumeSource,
    GCEPersistentDiskVolumeSource,
    PortworxVolumeSource,
    Volume,
    VsphereVirtualDiskVolumeSource,
)
from stowage.api.values.csi_migration import (
    REGION,
    REGION_BETA,
    ZONE,
    ZONE_BETA,
    AttachedVolume,
    csi_driver_of,
    csi_volume_of,
    csi_volume_of_pod,
    is_migratable,
    migrated_affinity,
)
from tests.support.volume_builders import affinity_to, make_volume

EBS, EBS_ZONE = "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"
GCE = "pd.csi.storage.gke.io"


@pytest.mark.parametrize(
    ("volume", "counts_as"),
    [
        (
            Volume("v", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("vol-1")),
            AttachedVolume(EBS, "vol-1"),
        ),
        (
            Volume("v", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("aws://a/vol-1")),
            AttachedVolume(EBS, "vol-1"),
        ),
        (
            Volume("v", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("aws:///x")),
            None,
        ),
        (
            Volume("v", gce_persistent_disk=GCEPersistentDiskVolumeSource("d")),
            AttachedVolume(GCE, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
        ),
        (
            Volume("v", azure_disk=AzureDiskVolumeSource("d", "/uri")),
            AttachedVolume("disk.csi.azure.com", "/uri"),
        ),
        (
            Volume("v", cinder=CinderVolumeSource("id")),
            AttachedVolume("cinder.csi.openstack.org", "id"),
        ),
        (
            Volume("v", portworx_volume=PortworxVolumeSource("id")),
            AttachedVolume("pxd.portworx.com", "id"),
        ),
        (Volume("v", azure_file=AzureFileVolumeSource()), None),
        (Volume("v", vsphere_volume=VsphereVirtualDiskVolumeSource()), None),
    ],
)
def test_inline_in_tree_volumes_count_as_volumes_of_their_csi_driver(
    volume: Volume, counts_as: AttachedVolume | None
) -> None:
    assert is_migratable(volume)
    assert csi_volume_of_pod(volume) == counts_as


def test_volumes_of_csi_drivers_are_not_migrated() -> None:
    volume = Volume("v", csi=CSIVolumeSource(EBS))
    assert not is_migratable(volume)
    assert csi_volume_of_pod(volume) is None


@pytest.mark.parametrize(
    ("zones", "place"),
    [
        (None, "zones/UNSPECIFIED"),
        ("us-east1-b", "zones/us-east1-b"),
        ("us-east1-b__us-east1-c", "regions/us-east1"),
    ],
)
def test_a_gce_disk_is_named_after_its_zones(zones: str | None, place: str) -> None:
    labels = {} if zones is None else {ZONE: zones}
    source = GCEPersistentDiskVolumeSource("d")
    volume = make_volume("v", driver="", labels=labels, gce_persistent_disk=source)
    assert csi_volume_of(volume) == AttachedVolume(GCE, f"projects/UNSPECIFIED/{place}/disks/d")


def test_a_gce_disk_is_named_after_its_old_zone_label_first() -> None:
    volume = make_volume(
        "v",
        driver="",
        labels={ZONE: "us-east1-b", ZONE_BETA: "us-east1-c"},
        gce_persistent_disk=GCEPersistentDiskVolumeSource("d"),
    )
    name = "projects/UNSPECIFIED/zones/us-east1-c/disks/d"
    assert csi_volume_of(volume) == AttachedVolume(GCE, name)


def test_a_gce_disk_of_two_regions_has_no_name() -> None:
    source = GCEPersistentDiskVolumeSource("d")
    labels = {ZONE: "us-east1-b__us-west1-c"}
    volume = make_volume("v", driver="", labels=labels, gce_persistent_disk=source)
    assert csi_volume_of(volume) is None


def test_provisioners_are_mapped_to_csi_drivers() -> None:
    provisioners = ("csi.example.com", "kubernetes.io/aws-ebs", "kubernetes.io/vsphere-volume", "")
    assert [csi_driver_of(each) for each in provisioners] == ["csi.example.com", EBS, "", ""]


SOURCE = AWSElasticBlockStoreVolumeSource("vol-1")


@pytest.mark.parametrize(
    ("where", "labels", "then"),
    [
        ((ZONE, ["a"]), {}, affinity_to(EBS_ZONE, ["a"])),
        ((ZONE_BETA, ["a"]), {ZONE: "b"}, affinity_to(EBS_ZONE, ["a"])),
        (None, {ZONE: "b__a"}, affinity_to(EBS_ZONE, ["a", "b"])),
        ((REGION_BETA, ["r"]), {}, affinity_to(REGION_BETA, ["r"])),
        (None, {}, None),
        (("disk", ["ssd"]), {}, affinity_to("disk", ["ssd"])),
    ],
)
def test_zones_are_translated_to_the_topology_label_of_the_driver(
    where: tuple[str, list[str]] | None, labels: dict[str, str], then: object
) -> None:
    volume = make_volume("v", driver="", where=where, labels=labels, aws_elastic_block_store=SOURCE)
    assert migrated_affinity(volume) == then


def test_the_beta_region_label_is_translated_if_the_beta_zone_label_is_set() -> None:
    volume = make_volume(
        "v",
        driver="",
        where=(REGION_BETA, ["r"]),
        labels={ZONE_BETA: "a"},
        aws_elastic_block_store=SOURCE,
    )
    then = migrated_affinity(volume)
    assert then is not None
    assert then.required is not None
    (term,) = then.required.node_selector_terms
    assert [(each.key, each.values) for each in term.match_expressions] == [
        (REGION, ("r",)),
        (EBS_ZONE, ("a",)),
    ]
