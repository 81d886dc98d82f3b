"""Volume plugins: their arguments, claims that no node helps, and nodes that a volume excludes."""

from __future__ import annotations

import msgspec
import pytest

from stowage.api.objects.volume import ImageVolumeSource, StorageObject, Volume
from stowage.api.status import Code
from stowage.framework import CycleState, NoArgs
from stowage.framework.extension_points import PreFilterPlugin
from stowage.plugins.volumes import (
    NodeVolumeLimits,
    VolumeBinding,
    VolumeBindingArgs,
    VolumeRestrictions,
    VolumeZone,
)
from tests.support.builders import ZONE, make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes, without_pod
from tests.support.volume_builders import (
    claim_volume,
    ephemeral_volume,
    make_claim,
    make_class,
    make_volume,
)
from tests.unit.plugins.single_plugin import pre_filter, pre_filter_of_volume, refused

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
    assert pre_filter_of_volume(BINDING, volume, *objects) == result


def test_a_class_without_a_volume_binding_mode_is_an_error() -> None:
    with pytest.raises(ValueError, match='VolumeBindingMode not set for StorageClass "waits"'):
        pre_filter_of_volume(BINDING, DATA, make_claim("data"), make_class(mode=None))


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
    assert pre_filter_of_volume(ZONES, DATA, *objects) == result


def test_a_missing_claim_is_rejected_on_every_node_unless_an_earlier_plugin_rejected_it() -> None:
    cluster = MirroredCluster([make_node("n0")])
    status = refused(LIMITS, cluster, make_pod("p", volumes=(ephemeral_volume("tmp"),)))["n0"]
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    missing = 'looking up PVC default/p-tmp: persistentvolumeclaim "p-tmp" not found'
    assert status.message == missing


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
