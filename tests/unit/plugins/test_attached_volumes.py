"""NodeVolumeLimits: which volumes count, and how often."""

from __future__ import annotations

import pytest

from stowage.api.objects.volume import (
    AWSElasticBlockStoreVolumeSource,
    AzureFileVolumeSource,
    CSIVolumeSource,
    Volume,
    VolumeAttachment,
)
from stowage.framework import NoArgs
from stowage.plugins.volumes import NodeVolumeLimits
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.volume_builders import (
    claim_volume,
    ephemeral_volume,
    make_attachment,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
)
from tests.unit.plugins.single_plugin import pre_filter_of_volume, refused

LIMITS = NodeVolumeLimits(NoArgs())

DATA = claim_volume("data")


@pytest.mark.parametrize(
    ("volume", "result"),
    [
        (DATA, "Success"),
        (ephemeral_volume("tmp"), "Success"),
        (Volume("f", azure_file=AzureFileVolumeSource()), "Success"),
        (Volume("c", csi=CSIVolumeSource("csi.example.com")), "Skip"),
    ],
)
def test_volumes_that_may_be_attached_count_for_limits(volume: Volume, result: str) -> None:
    assert pre_filter_of_volume(LIMITS, volume) == result


def test_limits_refuse_a_claim_that_was_not_made_for_the_ephemeral_volume() -> None:
    cluster = MirroredCluster([make_node("n0")])
    cluster.update_storage(make_claim("p-tmp", owner_uid="someone-else"))
    with pytest.raises(ValueError, match=r"default/p-tmp was not created for pod default/p "):
        refused(LIMITS, cluster, make_pod("p", volumes=(ephemeral_volume("tmp"),)))


def test_a_volume_that_two_pods_share_counts_once() -> None:
    cluster = MirroredCluster([make_node("n0"), make_node("n1")])
    cluster.update_storage(
        make_csi_node("n0", csi_example_com=1),
        make_csi_node("n1", csi_example_com=0),
        make_claim("data", volume="d"),
        make_claim("more", volume="e"),
        make_volume("d"),
        make_volume("e"),
    )
    cluster.bind(make_pod("first", volumes=(DATA,)), "n0")
    assert list(refused(LIMITS, cluster, make_pod("p", volumes=(DATA,)))) == ["n1"]
    both = make_pod("q", volumes=(DATA, claim_volume("more")))
    assert list(refused(LIMITS, cluster, both)) == ["n0", "n1"]


def test_a_pod_with_only_attached_volumes_fits_a_node_beyond_its_limit() -> None:
    cluster = MirroredCluster([make_node("n0")])
    cluster.update_storage(make_claim("data", volume="d"), make_volume("d"))
    cluster.bind(make_pod("first", volumes=(DATA,)), "n0")
    cluster.update_storage(make_csi_node("n0", csi_example_com=0))
    assert refused(LIMITS, cluster, make_pod("p", volumes=(DATA,))) == {}


def test_an_attached_volume_counts_once_and_counts_again_for_a_pod_that_requests_it() -> None:
    cluster = MirroredCluster([make_node("n0")])
    cluster.update_storage(
        make_csi_node("n0", csi_example_com=2),
        make_claim("data", volume="d"),
        make_claim("more", volume="e"),
        make_volume("d"),
        make_volume("e"),
        make_attachment("a", "n0", "d"),
    )
    more = make_pod("q", volumes=(claim_volume("more"),))
    assert refused(LIMITS, cluster, more) == {}
    cluster.bind(make_pod("first", volumes=(DATA,)), "n0")
    assert refused(LIMITS, cluster, more) == {}
    cluster.update_storage(make_attachment("b", "n0", "e"))
    assert list(refused(LIMITS, cluster, more)) == ["n0"]
    cluster.remove_storage(VolumeAttachment, "b")
    assert refused(LIMITS, cluster, more) == {}


def test_an_attachment_counts_once_its_volume_and_node_are_known() -> None:
    cluster = MirroredCluster()
    cluster.update_storage(make_attachment("a", "n0", "d"), make_csi_node("n0", csi_example_com=1))
    cluster.update_node(make_node("n0"))
    cluster.update_storage(make_claim("more", volume="e"), make_volume("e"))
    more = make_pod("q", volumes=(claim_volume("more"),))
    assert refused(LIMITS, cluster, more) == {}
    cluster.update_storage(make_volume("d"))
    assert list(refused(LIMITS, cluster, more)) == ["n0"]
    cluster.cache.validate()


EBS_CLASS = make_class("ebs", provisioner="kubernetes.io/aws-ebs")
INLINE = Volume("e", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("aws://z0/vol-1"))


@pytest.mark.parametrize(
    ("volume", "is_counted"),
    [
        (INLINE, True),
        (claim_volume("given"), True),
        (claim_volume("wanted"), True),
        (claim_volume("files"), False),
    ],
    ids=["inline", "of a claim", "of a claim's class", "of a kind that does not count"],
)
def test_in_tree_volumes_count_for_their_csi_driver(volume: Volume, is_counted: bool) -> None:
    """Migration applies to every node with a CSINode, whatever plugins it lists as migrated."""
    cluster = MirroredCluster([make_node("n0"), make_node("n1")])
    source = AWSElasticBlockStoreVolumeSource("vol-1")
    cluster.update_storage(
        EBS_CLASS,
        make_class("files", provisioner="kubernetes.io/azure-file"),
        make_claim("given", "ebs", volume="d"),
        make_volume("d", "ebs", driver="", aws_elastic_block_store=source),
        make_claim("wanted", "ebs"),
        make_claim("files", "files"),
        make_csi_node("n0", ebs_csi_aws_com=0, file_csi_azure_com=0),
    )
    want = ["n0"] if is_counted else []
    assert list(refused(LIMITS, cluster, make_pod("p", volumes=(volume,)))) == want


def test_an_inline_volume_and_a_claim_can_be_the_same_volume() -> None:
    cluster = MirroredCluster([make_node("n0")])
    source = AWSElasticBlockStoreVolumeSource("vol-1")
    cluster.update_storage(
        make_claim("given", "ebs", volume="d"),
        make_volume("d", "ebs", driver="", aws_elastic_block_store=source),
        make_csi_node("n0", ebs_csi_aws_com=1),
    )
    cluster.bind(make_pod("first", volumes=(INLINE,)), "n0")
    assert refused(LIMITS, cluster, make_pod("p", volumes=(claim_volume("given"),))) == {}


def test_a_volume_still_counts_once_when_its_claim_is_bound() -> None:
    cluster = MirroredCluster([make_node("n0")])
    cluster.update_storage(
        make_csi_node("n0", csi_example_com=1), make_class(), make_claim("data"), make_claim("more")
    )
    cluster.bind(make_pod("first", volumes=(DATA,)), "n0")
    asking = make_pod("p", volumes=(claim_volume("more"),))
    assert list(refused(LIMITS, cluster, asking)) == ["n0"]
    cluster.update_storage(make_volume("d"), make_claim("data", volume="d"))
    assert list(refused(LIMITS, cluster, asking)) == ["n0"]
    cluster.cache.validate()
    cluster.remove_pod("uid-first")
    assert refused(LIMITS, cluster, asking) == {}
