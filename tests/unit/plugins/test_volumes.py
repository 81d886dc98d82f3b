"""Volume plugins: PreFilter, Filter, Reserve and PreBind."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from stowage.api.cluster_events import EventResource
from stowage.api.config.loading import KubeSchedulerProfile
from stowage.api.objects.meta import LabelSelector, LabelSelectorRequirement
from stowage.api.objects.volume import (
    AWSElasticBlockStoreVolumeSource,
    AzureFileVolumeSource,
    CSIVolumeSource,
    ImageVolumeSource,
    StorageObject,
    Volume,
    VolumeAttachment,
)
from stowage.api.status import WAIT, Code
from stowage.framework import CycleState, ExtensionPoint, NoArgs, ReservePlan, build_profile
from stowage.framework.extension_points import FilterPlugin, PreBindProgress, PreFilterPlugin
from stowage.framework.runtime.row_filter import judges_rows
from stowage.plugins import in_tree_registry
from stowage.plugins.volumes import (
    NodeVolumeLimits,
    VolumeBinding,
    VolumeBindingArgs,
    VolumeRestrictions,
    VolumeZone,
)
from stowage.plugins.volumes.matching import match_claims
from stowage.plugins.volumes.pre_bind import check_plan, make_plan
from stowage.plugins.volumes.topology import VolumeTopology
from tests.support.builders import HOSTNAME, ZONE, make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes, without_pod
from tests.support.volume_builders import (
    claim_volume,
    ephemeral_volume,
    make_attachment,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
)
from tests.unit.plugins.single_plugin import pre_filter, refused

BINDING = VolumeBinding(VolumeBindingArgs())
LIMITS = NodeVolumeLimits(NoArgs())
RESTRICTIONS = VolumeRestrictions(NoArgs())
ZONES = VolumeZone(NoArgs())
PLUGINS: tuple[PreFilterPlugin, ...] = (RESTRICTIONS, LIMITS, BINDING, ZONES)
PLAIN = (Volume("config"), Volume("image", image=ImageVolumeSource("tools:1")))


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
@pytest.mark.parametrize("volumes", [(), PLAIN], ids=["none", "plain"])
def test_a_pod_without_volumes_that_restrict_nodes_is_skipped(
    plugin: PreFilterPlugin, volumes: tuple[Volume, ...]
) -> None:
    cluster = MirroredCluster([make_node("n0")])
    assert pre_filter(plugin, cluster, make_pod("p", volumes=volumes)).status.is_skip


def test_volume_binding_never_scores() -> None:
    cluster = MirroredCluster([make_node("n0")])
    nodes = existing_nodes(cluster.snapshot())
    assert BINDING.pre_score(CycleState(), cluster.info(make_pod("p")), nodes).is_skip


def test_the_bind_timeout_must_not_be_negative() -> None:
    assert [str(each) for each in VolumeBindingArgs(bind_timeout_seconds=-1).validate()] == [
        "bindTimeoutSeconds: -1 (expected 0 or more)"
    ]


def test_a_shape_is_refused_while_storage_capacity_is_not_scored() -> None:
    """kube-scheduler also refuses the field while its feature gate is off."""
    config = msgspec.convert({"shape": [{"utilization": 0, "score": 10}]}, VolumeBindingArgs)
    (problem,) = config.validate()
    assert (problem.path, problem.value) == ("shape", [{"utilization": 0, "score": 10}])
    assert [each.path for each in VolumeBindingArgs(shape=()).validate()] == ["shape"]
    assert not list(VolumeBindingArgs(shape=None).validate())


def test_every_in_tree_filter_plugin_evaluates_many_what_ifs_at_once() -> None:
    registry = in_tree_registry()
    plugins = build_profile(msgspec.convert({}, KubeSchedulerProfile), registry).plugins
    asked = [each for each in plugins[ExtensionPoint.FILTER] if isinstance(each, FilterPlugin)]
    assert len(asked) == len(plugins[ExtensionPoint.FILTER])
    assert {"VolumeRestrictions", "NodeVolumeLimits"} <= {plugin.name for plugin in asked}
    assert [plugin.name for plugin in asked if not judges_rows(plugin)] == []


def _pre_filter_result(plugin: PreFilterPlugin, volume: Volume, *objects: StorageObject) -> str:
    """PreFilter for a pod with this volume: the message of a rejection, else the code."""
    cluster = MirroredCluster([make_node("n0")])
    cluster.update_storage(*objects)
    status = pre_filter(plugin, cluster, make_pod("p", volumes=(volume,))).status
    if status.is_rejected:
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return status.message
    return status.code.title


DATA = claim_volume("data")
IMMEDIATE = make_class("now", mode="Immediate")
UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


@pytest.mark.parametrize(
    ("volume", "objects", "result"),
    [
        (DATA, (), 'persistentvolumeclaim "data" not found'),
        (DATA, (make_claim("data"), make_class()), "Success"),
        (DATA, (make_claim("data", volume="d"),), "Success"),
        (DATA, (make_claim("data", "now"), IMMEDIATE), UNBOUND_IMMEDIATE),
        (DATA, (make_claim("data", "absent"),), UNBOUND_IMMEDIATE),
        (DATA, (make_claim("data", None),), UNBOUND_IMMEDIATE),
        (DATA, (make_claim("data", volume="d", is_bound=False), make_class()), UNBOUND_IMMEDIATE),
        (
            DATA,
            (make_claim("data", volume="d", phase="Lost"),),
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "d"',
        ),
        (
            DATA,
            (make_claim("data", terminating=True),),
            'persistentvolumeclaim "data" is being deleted',
        ),
        (
            ephemeral_volume("tmp"),
            (),
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-tmp"',
        ),
        (
            ephemeral_volume("tmp"),
            (make_claim("p-tmp"), make_class()),
            "PVC default/p-tmp was not created for pod default/p (pod is not owner)",
        ),
        (
            ephemeral_volume("tmp"),
            (make_claim("p-tmp", owner_uid="uid-p"), make_class()),
            "Success",
        ),
    ],
)
def test_volume_binding_checks_claims_in_pre_filter(
    volume: Volume, objects: tuple[StorageObject, ...], result: str
) -> None:
    assert _pre_filter_result(BINDING, volume, *objects) == result


def test_a_class_without_a_volume_binding_mode_is_an_error() -> None:
    with pytest.raises(ValueError, match='VolumeBindingMode not set for StorageClass "waits"'):
        _pre_filter_result(BINDING, DATA, make_claim("data"), make_class(mode=None))


@pytest.mark.parametrize(
    ("objects", "result"),
    [
        ((), 'persistentvolumeclaim "data" not found'),
        ((make_claim("data", volume="d"),), 'persistentvolume "d" not found'),
        ((make_claim("data", volume="d"), make_volume("d")), "Skip"),
        ((make_claim("data", volume="d"), make_volume("d", labels={ZONE: "a"})), "Success"),
        ((make_claim("data", volume="d"), make_volume("d", labels={ZONE: "a__"})), "Skip"),
        ((make_claim("data", None),), "PersistentVolumeClaim had no pv name and storageClass name"),
        ((make_claim("data"),), 'storageclass.storage.k8s.io "waits" not found'),
        ((make_claim("data"), make_class()), "Skip"),
        ((make_claim("data", "now"), IMMEDIATE), "PersistentVolume had no name"),
        (
            (make_claim("data"), make_class(mode=None)),
            'VolumeBindingMode not set for StorageClass "waits"',
        ),
    ],
)
def test_volume_zone_checks_bound_volumes_in_pre_filter(
    objects: tuple[StorageObject, ...], result: str
) -> None:
    assert _pre_filter_result(ZONES, DATA, *objects) == result


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
    assert _pre_filter_result(LIMITS, volume) == result


def test_a_missing_claim_is_rejected_on_every_node_unless_an_earlier_plugin_rejected_it() -> None:
    cluster = MirroredCluster([make_node("n0")])
    status = refused(LIMITS, cluster, make_pod("p", volumes=(ephemeral_volume("tmp"),)))["n0"]
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    missing = 'looking up PVC default/p-tmp: persistentvolumeclaim "p-tmp" not found'
    assert status.message == missing


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


def test_a_read_write_once_pod_claim_is_free_again_when_its_pod_is_gone() -> None:
    cluster = MirroredCluster([make_node("n0"), make_node("n1")])
    cluster.update_storage(make_claim("data", volume="d", modes=["ReadWriteOncePod"]))
    cluster.bind(make_pod("first", volumes=(DATA,)), "n0")
    asking = make_pod("p", volumes=(DATA,))
    assert list(refused(RESTRICTIONS, cluster, asking)) == ["n0", "n1"]
    without = without_pod(cluster.snapshot(), "uid-first")
    status = RESTRICTIONS.pre_filter(CycleState(), cluster.info(asking), without).status
    assert status.is_skip
    assert list(refused(RESTRICTIONS, cluster, asking)) == ["n0", "n1"]
    cluster.remove_pod("uid-first")
    assert pre_filter(RESTRICTIONS, cluster, asking).status.is_skip


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


def test_a_node_without_the_old_zone_label_is_judged_by_the_one_that_replaces_it() -> None:
    old = "failure-domain.beta.kubernetes.io/zone"
    nodes = [
        make_node("old", labels={old: "a"}),
        make_node("new", labels={ZONE: "a"}),
        make_node("both", labels={old: "b", ZONE: "a"}),
        make_node("elsewhere", labels={ZONE: "b"}),
        make_node("nowhere"),
    ]
    cluster = MirroredCluster(nodes)
    for each in (make_claim("data", volume="d"), make_volume("d", labels={old: "a__c"})):
        cluster.update_storage(each)
    found = refused(ZONES, cluster, make_pod("p", volumes=(DATA,)))
    assert set(found) == {"both", "elsewhere"}


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
