"""VolumeBinding: which volumes claims get, on which nodes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stowage.api.cluster_events import EventResource
from stowage.api.objects.meta import LabelSelector, LabelSelectorRequirement
from stowage.api.objects.volume import AWSElasticBlockStoreVolumeSource
from stowage.api.status import WAIT
from stowage.framework import CycleState, ReservePlan
from stowage.framework.extension_points import PreBindProgress
from stowage.plugins.volumes import VolumeBinding, VolumeBindingArgs
from stowage.plugins.volumes.matching import match_claims
from stowage.plugins.volumes.pre_bind import check_plan, make_plan
from stowage.plugins.volumes.topology import VolumeTopology
from tests.support.builders import HOSTNAME, ZONE, make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes
from tests.support.volume_builders import (
    claim_volume,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
)
from tests.unit.plugins.single_plugin import refused

BINDING = VolumeBinding(VolumeBindingArgs())

DATA = claim_volume("data")


def test_two_claims_of_a_pod_need_two_volumes_on_one_node() -> None:
    cluster = MirroredCluster([make_node("n0"), make_node("n1")])
    cluster.update_storage(
        make_class(provisioner="kubernetes.io/no-provisioner"),
        make_claim("one"),
        make_claim("two"),
        make_volume("a", where=(HOSTNAME, ["n0"])),
        make_volume("b", where=(HOSTNAME, ["n0"])),
        make_volume("c", where=(HOSTNAME, ["n1"])),
    )
    pod = make_pod("p", volumes=(claim_volume("one"), claim_volume("two")))
    assert list(refused(BINDING, cluster, pod)) == ["n1"]


def test_claims_of_a_pod_get_different_volumes_and_each_the_smallest_that_fits() -> None:
    cluster = MirroredCluster([make_node("n0"), make_node("n1")])
    cluster.update_storage(
        make_class(provisioner="kubernetes.io/no-provisioner"),
        make_claim("small", size="1Gi"),
        make_claim("large", size="2Gi"),
        make_volume("a", size="1500Mi", where=(HOSTNAME, ["n0", "n1"])),
        make_volume("b", size="2Gi", where=(HOSTNAME, ["n0"])),
        make_volume("c", size="1Gi", where=(HOSTNAME, ["n1"])),
    )
    pod = make_pod("p", volumes=(claim_volume("large"), claim_volume("small")))
    assert list(refused(BINDING, cluster, pod)) == ["n1"]
    state, snapshot = CycleState(), cluster.snapshot()
    BINDING.pre_filter(state, cluster.info(pod), snapshot)
    plan = BINDING.reserve(state, cluster.info(pod), "n0")
    assert isinstance(plan, ReservePlan)
    given = {volume.metadata.name: volume.spec.claim_ref for volume in plan.volumes}
    assert {name: ref.name for name, ref in given.items() if ref} == {"a": "small", "b": "large"}
    assert list(snapshot.storage.volumes.assumptions()) == []


def test_of_equal_volumes_as_many_are_considered_as_the_pod_has_claims() -> None:
    cluster = MirroredCluster([make_node("n0"), make_node("n1")])
    volumes = (make_volume(f"v{number}", where=(HOSTNAME, ["n0"])) for number in range(5))
    elsewhere = (make_volume(f"w{number}", where=(HOSTNAME, ["n1"])) for number in range(5))
    cluster.update_storage(
        make_class(provisioner="kubernetes.io/no-provisioner"), *volumes, *elsewhere
    )
    claims = [make_claim("one"), make_claim("two")]
    nodes = existing_nodes(cluster.snapshot())
    first, second = match_claims(claims, nodes, VolumeTopology())
    names = ["v0", "v1", "w0", "w1"]
    assert [volume.metadata.name for volume in second.volumes] == names
    assert [[names[index] for index in each.choice] for each in (first, second)] == [
        ["v0", "w0"],
        ["v1", "w1"],
    ]


def test_a_pod_that_waits_for_volumes_waits_for_its_objects_and_no_others() -> None:
    cluster = MirroredCluster([make_node("n0")])
    cluster.update_storage(
        make_class(),
        make_claim("given"),
        make_claim("new"),
        make_volume("free", where=(HOSTNAME, ["n0"])),
    )
    storage = cluster.snapshot().storage
    free, given, new = (
        storage.volumes.get_api_object("free"),
        storage.claims.get_api_object("default/given"),
        storage.claims.get_api_object("default/new"),
    )
    assert free is not None
    assert given is not None
    assert new is not None
    plan = make_plan([(free, given)], [new], "n0")
    cluster.update_storage(plan.given[0].after, plan.provisioned[0].after)
    objects = {
        (EventResource.NODE, "n0"),
        (EventResource.CSI_NODE, "n0"),
        (EventResource.PERSISTENT_VOLUME, "free"),
        (EventResource.PERSISTENT_VOLUME_CLAIM, "default/given"),
        (EventResource.PERSISTENT_VOLUME_CLAIM, "default/new"),
    }
    progress = check_plan(plan, "n0", cluster.snapshot(), VolumeTopology())
    assert progress == PreBindProgress(WAIT, frozenset(objects))
    cluster.update_storage(
        replace(plan.provisioned[0].after, spec=replace(new.spec, volume_name="provisioned"))
    )
    progress = check_plan(plan, "n0", cluster.snapshot(), VolumeTopology())
    objects.add((EventResource.PERSISTENT_VOLUME, "provisioned"))
    assert progress == PreBindProgress(WAIT, frozenset(objects))


def test_claims_that_wait_for_different_nodes_can_be_provisioned_on_none() -> None:
    cluster = MirroredCluster([make_node("n0"), make_node("n1")])
    cluster.update_storage(make_class(), *(make_claim(n, selected_node=n) for n in ("n0", "n1")))
    for names, nodes in ((["n0"], ["n1"]), (["n1"], ["n0"]), (["n0", "n1"], ["n0", "n1"])):
        pod = make_pod("p", volumes=tuple(claim_volume(name) for name in names))
        assert list(refused(BINDING, cluster, pod)) == nodes


@pytest.mark.parametrize(
    ("where", "unreachable"),
    [(None, ["migrated-b"]), ((ZONE, ["a"]), ["migrated-b", "old-b"])],
    ids=["the zone label of the volume", "the node affinity of the volume"],
)
def test_only_migrated_nodes_reach_an_in_tree_volume_by_the_label_of_its_driver(
    where: tuple[str, list[str]] | None, unreachable: list[str]
) -> None:
    key = "topology.ebs.csi.aws.com/zone"
    migrated = [make_node(f"migrated-{zone}", labels={key: zone}) for zone in "ab"]
    old = [make_node(f"old-{zone}", labels={ZONE: zone}) for zone in "ab"]
    cluster = MirroredCluster([*migrated, *old])
    source = AWSElasticBlockStoreVolumeSource("vol-1")
    labels = {ZONE: "a"}
    cluster.update_storage(
        make_claim("data", volume="d"),
        make_volume("d", driver="", labels=labels, where=where, aws_elastic_block_store=source),
        *(make_csi_node(f"migrated-{zone}", migrated=["kubernetes.io/aws-ebs"]) for zone in "ab"),
    )
    assert sorted(refused(BINDING, cluster, make_pod("p", volumes=(DATA,)))) == unreachable


def test_a_node_must_be_allowed_for_every_volume_that_is_to_be_provisioned() -> None:
    cluster = MirroredCluster([make_node(name, labels={ZONE: name}) for name in "abc"])
    cluster.update_storage(
        make_class("in-a-or-b", topology=(ZONE, ["a", "b"])),
        make_class("in-b-or-c", topology=(ZONE, ["b", "c"])),
        make_claim("one", "in-a-or-b"),
        make_claim("two", "in-b-or-c"),
    )
    pod = make_pod("p", volumes=(claim_volume("one"), claim_volume("two")))
    assert list(refused(BINDING, cluster, pod)) == ["a", "c"]


def test_a_selector_of_a_claim_that_cannot_be_compiled_is_an_error() -> None:
    wrong = LabelSelector(match_expressions=(LabelSelectorRequirement("disk", "Near", ("a",)),))
    claim = make_claim("data")
    claim = replace(claim, spec=replace(claim.spec, selector=wrong))
    cluster = MirroredCluster([make_node("n0")])
    for each in (claim, make_class(), make_volume("d")):
        cluster.update_storage(each)
    text = "error creating internal label selector for claim: default/data: "
    with pytest.raises(ValueError, match=text):
        refused(BINDING, cluster, make_pod("p", volumes=(DATA,)))
