"""MaxEBSVolumeCount, MaxGCEPDVolumeCount, MaxAzureDiskVolumeCount, MaxCSIVolumeCount of 1.12."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stowage.api.objects.pod import Pod
from stowage.api.objects.volume import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    GCEPersistentDiskVolumeSource,
    Volume,
)
from stowage.api.status import Code
from stowage.api.values.attach_limits import csi_limit
from stowage.framework import NoArgs
from stowage.framework.extension_points import FilterPlugin
from stowage.plugins import in_tree_registry
from stowage.plugins.volumes import MaxCSIVolumeCount, MaxVolumeCountArgs, max_ebs_volume_count
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.volume_builders import (
    DRIVER,
    claim_volume,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
)
from tests.unit.plugins.single_plugin import refused

Disk = Callable[[int], Volume]


def ebs(number: int) -> Volume:
    """An EBS volume in a pod."""
    source = AWSElasticBlockStoreVolumeSource(f"vol-{number}")
    return Volume(f"e{number}", aws_elastic_block_store=source)


def gce(number: int) -> Volume:
    """A GCE disk in a pod."""
    source = GCEPersistentDiskVolumeSource(f"disk-{number}")
    return Volume(f"g{number}", gce_persistent_disk=source)


def azure(number: int) -> Volume:
    """An Azure disk in a pod."""
    source = AzureDiskVolumeSource(f"disk-{number}", f"uri-{number}")
    return Volume(f"a{number}", azure_disk=source)


def with_disks(name: str, disk: Disk, numbers: range) -> Pod:
    """A pod with these disks."""
    return make_pod(name, volumes=tuple(map(disk, numbers)))


def default_plugin(name: str) -> FilterPlugin:
    """A plugin without arguments."""
    factory = in_tree_registry()[name]
    plugin = factory.construct(factory.args())
    assert isinstance(plugin, FilterPlugin)
    return plugin


@pytest.mark.parametrize(
    ("name", "disk", "labels", "limit"),
    [
        ("MaxEBSVolumeCount", ebs, {}, 39),
        ("MaxEBSVolumeCount", ebs, {"beta.kubernetes.io/instance-type": "m4.large"}, 39),
        ("MaxEBSVolumeCount", ebs, {"beta.kubernetes.io/instance-type": "m5.large"}, 25),
        ("MaxEBSVolumeCount", ebs, {"node.kubernetes.io/instance-type": "c5d.large"}, 25),
        ("MaxEBSVolumeCount", ebs, {"beta.kubernetes.io/instance-type": "t3.micro"}, 25),
        ("MaxGCEPDVolumeCount", gce, {}, 16),
        ("MaxAzureDiskVolumeCount", azure, {}, 16),
    ],
)
def test_the_default_limit_can_be_reached_and_not_exceeded(
    name: str, disk: Disk, labels: dict[str, str], limit: int
) -> None:
    plugin, cluster = default_plugin(name), MirroredCluster([make_node("n", labels=labels)])
    cluster.bind(with_disks("first", disk, range(limit - 1)), "n")
    assert refused(plugin, cluster, with_disks("p", disk, range(limit - 1, limit))) == {}
    status = refused(plugin, cluster, with_disks("q", disk, range(limit - 1, limit + 1)))["n"]
    assert (status.code, status.message) == (
        Code.UNSCHEDULABLE,
        "node(s) exceed max volume count",
    )


def test_a_disk_that_the_node_has_already_counts_once() -> None:
    cluster, plugin = MirroredCluster([make_node("n")]), default_plugin("MaxGCEPDVolumeCount")
    cluster.bind(with_disks("first", gce, range(16)), "n")
    assert refused(plugin, cluster, with_disks("p", gce, range(2))) == {}
    assert list(refused(plugin, cluster, with_disks("q", gce, range(15, 17)))) == ["n"]


def test_disks_of_other_kinds_do_not_count() -> None:
    cluster, plugin = MirroredCluster([make_node("n")]), default_plugin("MaxAzureDiskVolumeCount")
    cluster.bind(with_disks("first", gce, range(16)), "n")
    cluster.bind(with_disks("second", ebs, range(39)), "n")
    assert refused(plugin, cluster, with_disks("p", azure, range(16))) == {}


def test_the_allocatable_of_a_node_comes_before_the_argument() -> None:
    plugin = max_ebs_volume_count(MaxVolumeCountArgs(2))
    cluster = MirroredCluster([make_node("small"), make_node("large")])
    cluster.update_node(make_node("large", allocatable={"attachable-volumes-aws-ebs": "3"}))
    assert list(refused(plugin, cluster, with_disks("p", ebs, range(3)))) == ["small"]
    # A changed node is read again.
    cluster.update_node(make_node("large", allocatable={"attachable-volumes-aws-ebs": "0"}))
    assert list(refused(plugin, cluster, with_disks("q", ebs, range(1)))) == ["large"]


def test_a_node_beyond_its_limit_gets_no_pod_whose_disks_it_has() -> None:
    cluster, plugin = MirroredCluster([make_node("n")]), max_ebs_volume_count(MaxVolumeCountArgs(1))
    cluster.bind(with_disks("first", ebs, range(2)), "n")
    assert list(refused(plugin, cluster, with_disks("p", ebs, range(1)))) == ["n"]
    assert refused(plugin, cluster, make_pod("without")) == {}


def test_a_claim_counts_by_its_volume_and_until_then_by_its_class() -> None:
    cluster, plugin = MirroredCluster([make_node("n")]), max_ebs_volume_count(MaxVolumeCountArgs(1))
    cluster.update_storage(make_class("fast", provisioner="kubernetes.io/aws-ebs"))
    cluster.update_storage(make_claim("data", "fast"))
    cluster.bind(make_pod("first", volumes=(claim_volume("data"),)), "n")
    asking = with_disks("p", ebs, range(1))
    assert list(refused(plugin, cluster, asking)) == ["n"]
    source = AWSElasticBlockStoreVolumeSource("vol-0")
    cluster.update_storage(make_volume("pv", driver="", aws_elastic_block_store=source))
    cluster.update_storage(make_claim("data", "fast", volume="pv"))
    assert refused(plugin, cluster, asking) == {}, "the claim's volume is the pod's own disk"
    missing = make_pod("q", volumes=(claim_volume("unknown"),))
    assert refused(plugin, cluster, missing) == {}, "a claim that does not exist does not count"


def test_csi_volumes_count_by_the_limit_of_the_csi_node_then_of_the_node() -> None:
    cluster, plugin = MirroredCluster(), MaxCSIVolumeCount(NoArgs())
    cluster.update_node(make_node("a", allocatable={f"attachable-volumes-csi-{DRIVER}": "1"}))
    cluster.update_node(make_node("b", allocatable={f"attachable-volumes-csi-{DRIVER}": "1"}))
    cluster.update_node(make_node("unlimited"))
    for name in ("x", "y"):
        cluster.update_storage(make_claim(name, volume=f"pv-{name}"), make_volume(f"pv-{name}"))
    both = make_pod("p", volumes=(claim_volume("x"), claim_volume("y")))
    assert list(refused(plugin, cluster, both)) == ["a", "b"]
    cluster.update_storage(make_csi_node("a", csi_example_com=2))
    assert list(refused(plugin, cluster, both)) == ["b"]


def test_in_tree_volumes_do_not_count_as_csi_volumes() -> None:
    cluster, plugin = MirroredCluster([make_node("n")]), MaxCSIVolumeCount(NoArgs())
    cluster.update_storage(make_csi_node("n", ebs_csi_aws_com=0))
    assert refused(plugin, cluster, with_disks("p", ebs, range(1))) == {}


def test_the_resource_of_a_driver_with_a_long_name_ends_in_a_hash() -> None:
    """``com.google.csi...`` of the tests of 1.12: 23 characters, then 16 digits of SHA-1."""
    assert csi_limit("com.amazon.ebs") == "attachable-volumes-csi-com.amazon.ebs"
    long = csi_limit("A" * 30 + "B" * 10)
    assert long.startswith("attachable-volumes-csi-" + "A" * 23)
    assert len(long) == 62


def test_a_limit_must_be_positive() -> None:
    (error,) = MaxVolumeCountArgs(0).validate()
    assert str(error) == "maxVolumes: 0 (expected greater than 0)"


def test_no_csi_driver_may_exceed_its_limit() -> None:
    drivers = {"tape": "a.example.com", "disk": "b.example.com"}
    pod = make_pod("p", volumes=tuple(claim_volume(name) for name in drivers))
    for full in drivers.values():
        cluster = MirroredCluster([make_node("n")])
        for name, driver in drivers.items():
            volume = make_volume(f"pv-{name}", driver=driver)
            cluster.update_storage(make_claim(name, volume=f"pv-{name}"), volume)
        limits: dict[str, Any] = {driver: int(driver != full) for driver in drivers.values()}
        cluster.update_storage(make_csi_node("n", **limits))
        assert list(refused(MaxCSIVolumeCount(NoArgs()), cluster, pod)) == ["n"], full
