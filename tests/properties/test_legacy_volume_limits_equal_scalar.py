"""The volume limits of kube-scheduler 1.12 reject as their scalar twins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.volume import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    GCEPersistentDiskVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageObject,
    Volume,
)
from stowage.framework import CycleState, NoArgs
from stowage.framework.extension_points import FilterPlugin
from stowage.framework.node_verdicts import PluginVerdict
from stowage.plugins.volumes import (
    MaxCSIVolumeCount,
    MaxVolumeCountArgs,
    max_azure_disk_volume_count,
    max_ebs_volume_count,
    max_gce_pd_volume_count,
)
from stowage.state.what_if.row_local import RowWhatIf
from tests.support.builders import make_node, make_pod
from tests.support.generators import volume_strategies as some
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.scalar import legacy_volume_limits as twins
from tests.support.scalar.cluster import PlainCluster
from tests.support.volume_builders import DRIVER, claim_volume, make_class, make_volume
from tests.unit.plugins.single_plugin import refused

Twin = Callable[[Pod, Node, PlainCluster], set[str]]
TWO = MaxVolumeCountArgs(2)
MAKERS: dict[str, tuple[Callable[[], FilterPlugin], Twin]] = {
    "EBS": (partial(max_ebs_volume_count, TWO), partial(twins.max_volume_count, "aws-ebs", 2)),
    "GCE": (partial(max_gce_pd_volume_count, TWO), partial(twins.max_volume_count, "gce-pd", 2)),
    "Azure": (
        partial(max_azure_disk_volume_count, TWO),
        partial(twins.max_volume_count, "azure-disk", 2),
    ),
    "CSI": (partial(MaxCSIVolumeCount, NoArgs()), twins.max_csi_volume_count),
}

_disk_sources = st.one_of(
    st.sampled_from(("vol-1", "vol-2", "vol-3")).map(
        lambda name: {"aws_elastic_block_store": AWSElasticBlockStoreVolumeSource(name)}
    ),
    st.sampled_from(("x", "y", "z")).map(
        lambda name: {"gce_persistent_disk": GCEPersistentDiskVolumeSource(name)}
    ),
    st.sampled_from(("a", "b", "c")).map(
        lambda name: {"azure_disk": AzureDiskVolumeSource(name, f"uri-{name}")}
    ),
)


@st.composite
def _disk_volumes(draw: st.DrawFn) -> PersistentVolume:
    name = draw(st.sampled_from(some.VOLUMES))
    return make_volume(name, driver="", **draw(_disk_sources))


_classes = st.builds(
    make_class,
    st.sampled_from(some.CLASSES),
    provisioner=st.sampled_from((DRIVER, *twins.PROVISIONERS.values())),
)
_storage: st.SearchStrategy[StorageObject] = st.one_of(
    some.volumes,
    _disk_volumes(),
    some.bound_claims,
    some.bound_claims,
    some.unbound_claims,
    _classes,
    some.csi_nodes,
    some.attachments,
)
_pod_volumes = st.lists(
    st.one_of(
        st.sampled_from(some.CLAIMS).map(claim_volume),
        _disk_sources.map(lambda source: Volume("inline", **source)),
    ),
    max_size=4,
).map(tuple)
_limits = st.fixed_dictionaries(
    {},
    optional={
        f"attachable-volumes-{kind}": st.sampled_from(("0", "1", "3"))
        for kind in (*twins.PROVISIONERS, f"csi-{DRIVER}")
    },
)


def _pods(*names: str) -> st.SearchStrategy[Pod]:
    return st.builds(make_pod, st.sampled_from(names), volumes=_pod_volumes)


_changes = st.one_of(
    st.builds(make_node, st.sampled_from(some.NODES), allocatable=_limits),
    _storage,
    _storage,
    st.tuples(_pods(*(f"p{index}" for index in range(6))), st.sampled_from(some.NODES)),
    st.sampled_from(some.CLAIMS),
)


def _apply(cluster: MirroredCluster, change: object) -> None:
    if isinstance(change, Node):
        cluster.update_node(change)
    elif isinstance(change, tuple):
        pod, node_name = change
        if pod.metadata.uid in cluster.plain.pods:
            cluster.remove_pod(pod.metadata.uid)  # the volumes of a pod never change
        cluster.bind(pod, node_name)
    elif isinstance(change, str):
        key = (PersistentVolumeClaim, f"default/{change}")
        if key in cluster.plain.storage:
            cluster.remove_storage(*key)
    else:
        cluster.update_storage(change)  # type: ignore[arg-type]


@pytest.mark.parametrize("which", MAKERS)
@settings(max_examples=150, deadline=None)
@given(changes=st.lists(_changes, min_size=5, max_size=25), pod=_pods("asking"))
def test_limits_equal_their_twins(which: str, changes: list[object], pod: Pod) -> None:
    """One plugin and one cache see every change; the twin starts afresh."""
    make, twin = MAKERS[which]
    plugin, cluster = make(), MirroredCluster()
    for change in changes:
        _apply(cluster, change)
        found = refused(plugin, cluster, pod)
        wanted = {
            name: twin(pod, node, cluster.plain) for name, node in cluster.plain.nodes.items()
        }
        assert {name: set(status.reasons) for name, status in found.items()} == {
            name: reasons for name, reasons in wanted.items() if reasons
        }
    cluster.cache.validate()


@pytest.mark.parametrize("which", MAKERS)
@settings(max_examples=100, deadline=None)
@given(
    storage=st.lists(_storage, min_size=3, max_size=12),
    placed=st.lists(
        st.tuples(_pods(*(f"p{index}" for index in range(6))), st.sampled_from(some.NODES)),
        max_size=6,
    ),
    allocatable=_limits,
    pod=_pods("asking"),
    data=st.data(),
)
def test_a_what_if_of_each_node_equals_the_twin_without_the_pods(
    which: str,
    storage: list[StorageObject],
    placed: list[tuple[Pod, str]],
    allocatable: dict[str, str],
    pod: Pod,
    data: st.DataObject,
) -> None:
    """Preemption asks about all nodes at once, each without some of its pods."""
    make, twin = MAKERS[which]
    cluster = MirroredCluster([make_node(name, allocatable=allocatable) for name in some.NODES])
    for change in (*storage, *placed):
        _apply(cluster, change)
    snapshot, info = cluster.snapshot(), cluster.info(pod)
    what_if = RowWhatIf(snapshot, snapshot.exists.nonzero()[0])
    size = what_if.ranked.num_slots
    chosen = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    what_if.remove(np.array(chosen, dtype=np.bool_))
    gone = [
        each for place in range(len(what_if)) for each in what_if.removed_pods.removed_on(place)
    ]
    view = what_if.view(np.arange(len(what_if)))
    answer = PluginVerdict("plugin", make().filter(CycleState(), info, view))
    for each in gone:
        cluster.remove_pod(each.uid)
    for place, name in enumerate(view.names):
        assert set(answer.status(place).reasons) == twin(
            pod, cluster.plain.nodes[name], cluster.plain
        )
