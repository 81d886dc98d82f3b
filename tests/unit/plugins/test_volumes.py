from __future__ import annotations

import pytest

from scheduler.api.status import Code
from scheduler.api.volume import (
    AzureDiskVolumeSource,
    EphemeralVolumeSource,
    GCEPersistentDiskVolumeSource,
    ImageVolumeSource,
    PersistentVolumeClaimVolumeSource,
    Volume,
)
from scheduler.framework import CycleState, NoArgs
from scheduler.framework.extension_points import PreFilterPlugin
from scheduler.plugins.volumes import (
    NodeVolumeLimits,
    VolumeBinding,
    VolumeBindingArgs,
    VolumeRestrictions,
    VolumeZone,
)
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes
from tests.unit.plugins.single_filter import pre_filter

BINDING = VolumeBinding(VolumeBindingArgs())
PLUGINS: tuple[PreFilterPlugin, ...] = (
    VolumeRestrictions(NoArgs()),
    NodeVolumeLimits(NoArgs()),
    BINDING,
    VolumeZone(NoArgs()),
)
PLAIN = (Volume("config"), Volume("image", image=ImageVolumeSource("tools:1")))


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
@pytest.mark.parametrize("volumes", [(), PLAIN], ids=["none", "plain"])
def test_a_pod_that_no_volume_ties_to_nodes_is_skipped(
    plugin: PreFilterPlugin, volumes: tuple[Volume, ...]
) -> None:
    cluster = MirroredCluster([make_node("n0")])
    assert pre_filter(plugin, cluster, make_pod("p", volumes=volumes)).status.is_skip


def test_volume_binding_never_scores() -> None:
    cluster = MirroredCluster([make_node("n0")])
    nodes = existing_nodes(cluster.snapshot())
    assert BINDING.pre_score(CycleState(), cluster.info(make_pod("p")), nodes).is_skip


@pytest.mark.parametrize(
    ("volume", "refusing", "word"),
    [
        (
            Volume("v", persistent_volume_claim=PersistentVolumeClaimVolumeSource("data")),
            ["VolumeBinding", "VolumeZone"],
            "PersistentVolumeClaims",
        ),
        (
            Volume("v", ephemeral=EphemeralVolumeSource()),
            ["VolumeBinding", "VolumeZone"],
            "PersistentVolumeClaims",
        ),
        (
            Volume("v", gce_persistent_disk=GCEPersistentDiskVolumeSource("disk")),
            ["VolumeRestrictions"],
            "gcePersistentDisk",
        ),
        (
            Volume("v", azure_disk=AzureDiskVolumeSource("disk")),
            ["NodeVolumeLimits"],
            "azureDisk",
        ),
    ],
)
def test_a_pod_that_a_volume_ties_to_nodes_is_refused_with_the_reason(
    volume: Volume, refusing: list[str], word: str
) -> None:
    cluster = MirroredCluster([make_node("n0")])
    pod = make_pod("p", volumes=(volume,))
    statuses = {plugin.name: pre_filter(plugin, cluster, pod).status for plugin in PLUGINS}
    assert [name for name, status in statuses.items() if not status.is_skip] == refusing
    for name in refusing:
        assert statuses[name].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert word in statuses[name].message


def test_the_time_to_bind_must_not_be_negative() -> None:
    assert [str(each) for each in VolumeBindingArgs(bind_timeout_seconds=-1).validate()] == [
        "bindTimeoutSeconds: -1 (expected 0 or more)"
    ]
