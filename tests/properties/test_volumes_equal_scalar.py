"""The volume plugins decide over all nodes at once as their scalar twins do node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.volume import PersistentVolumeClaim, StorageClass, StorageObject
from stowage.framework import CycleState, NoArgs
from stowage.framework.extension_points import FilterPlugin, PreFilterPlugin
from stowage.framework.node_verdicts import PluginVerdict
from stowage.plugins.volumes import (
    NodeVolumeLimits,
    ScoringVolumeBinding,
    ScoringVolumeBindingArgs,
    VolumeBinding,
    VolumeBindingArgs,
    VolumeRestrictions,
    VolumeZone,
)
from stowage.state import Snapshot
from stowage.state.storage.volume_use import VolumeUse
from stowage.state.what_if.snapshot import WhatIfSnapshot
from tests.support.builders import ZONE, make_node
from tests.support.generators import volume_strategies as some
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes, on_node
from tests.support.scalar import volumes as twins
from tests.support.scalar.cluster import PlainCluster
from tests.support.scalar.node_filters import Answer
from tests.support.volume_builders import DRIVER, make_class

Twin = Callable[[Pod, Node, PlainCluster], Answer]
PLUGINS: dict[str, tuple[FilterPlugin, Twin]] = {
    "restrictions": (VolumeRestrictions(NoArgs()), twins.volume_restrictions),
    "limits": (NodeVolumeLimits(NoArgs()), twins.node_volume_limits),
    "scaled limits": (
        NodeVolumeLimits(NoArgs(), parse_feature_gates(["VolumeLimitScaling=true"])),
        twins.scaled_volume_limits,
    ),
    "binding": (VolumeBinding(VolumeBindingArgs()), twins.volume_binding),
    "zone": (VolumeZone(NoArgs()), twins.volume_zone),
}
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
LABELS: tuple[dict[str, str], ...] = (
    {ZONE: "z0", EBS_ZONE: "z0"},
    {ZONE: "z1", EBS_ZONE: "z0"},
    {BETA_ZONE: "z1"},
    {},
)


def _cluster(
    objects: Sequence[StorageObject], placed: Sequence[tuple[Pod, str]], pod: Pod
) -> MirroredCluster:
    """Objects may repeat, in any order; what the pod needs to pass PreFilter is added."""
    cluster = MirroredCluster()
    for name, labels in zip(some.NODES, LABELS, strict=True):
        cluster.update_node(make_node(name, labels=labels))
    for other, node_name in placed:
        cluster.update_pod(on_node(other, node_name))
    cluster.update_storage(*objects)
    known = {key for kind, key in cluster.plain.storage if kind is PersistentVolumeClaim}
    cluster.update_storage(*some.missing_claims(pod, known))
    for name in some.CLASSES:
        if cluster.plain.stored(StorageClass, name) is None:
            cluster.update_storage(make_class(name))
    return cluster


@pytest.mark.parametrize("which", PLUGINS)
@settings(max_examples=200, deadline=None)
@given(
    objects=some.storages,
    placed=st.lists(
        st.tuples(some.pods(), st.sampled_from((*some.NODES, "elsewhere"))), max_size=4
    ),
    pod=some.pods(("asking",)),
)
def test_verdicts_over_all_nodes_equal_the_twins(
    which: str, objects: list[StorageObject], placed: list[tuple[Pod, str]], pod: Pod
) -> None:
    plugin, twin = PLUGINS[which]
    cluster = _cluster(objects, placed, pod)
    cluster.cache.validate()
    state, info, snapshot = CycleState(), cluster.info(pod), cluster.snapshot()
    nodes = existing_nodes(snapshot)
    assert isinstance(plugin, PreFilterPlugin)
    status = plugin.pre_filter(state, info, snapshot).status
    if status.is_rejected:
        assert which == "zone"
        assert "not found" in status.message
        return
    want = {
        node.metadata.name: twin(pod, node, cluster.plain) for node in cluster.plain.nodes.values()
    }
    if status.is_skip:
        assert [reasons for reasons, _ in want.values() if reasons] == []
        return
    answer = PluginVerdict(plugin.name, plugin.filter(state, info, nodes))
    for position, name in enumerate(nodes.names):
        got = answer.status(position)
        reasons, is_unresolvable = want[name]
        assert set(got.reasons) == reasons
        if reasons:
            assert (got.code.title == "UnschedulableAndUnresolvable") == is_unresolvable


SCORING = ScoringVolumeBinding(ScoringVolumeBindingArgs())


@settings(max_examples=200, deadline=None)
@given(objects=some.storages, pod=some.pods(("asking",)), is_narrowed=st.booleans())
def test_scores_by_storage_capacity_equal_the_twin_on_every_feasible_node(
    objects: list[StorageObject], pod: Pod, is_narrowed: bool
) -> None:
    cluster = _cluster(objects, (), pod)
    state, info, snapshot = CycleState(), cluster.info(pod), cluster.snapshot()
    if not SCORING.pre_filter(state, info, snapshot).status.is_success:
        return
    asked = existing_nodes(snapshot) if is_narrowed else snapshot.all_nodes
    rejected = SCORING.filter(state, info, asked).rejected(len(asked))
    feasible = snapshot.view(asked.rows[asked.exists & ~rejected])
    if not len(feasible):
        return
    status = SCORING.pre_score(state, info, feasible)
    by_name = cluster.plain.nodes
    want = [twins.capacity_score(pod, by_name[name], cluster.plain) for name in feasible.names]
    if status.is_skip:
        assert want == [0] * len(feasible)
        return
    assert SCORING.score(state, info, feasible).tolist() == want


def _volume_counts(use: VolumeUse) -> dict[str, object]:
    tables = {
        name: {key: dict(table.at(key)) for key in table} for name, table in use.tables().items()
    }
    return {**tables, "attached": use.attached_counts()}


@settings(max_examples=60, deadline=None)
@given(
    objects=some.storages,
    placed=st.lists(st.tuples(some.pods(), st.sampled_from(some.NODES)), max_size=4),
    pod=some.pods(("asking",)),
    node_name=st.sampled_from(some.NODES),
)
def test_a_what_if_equals_the_cluster_after_the_change(
    objects: list[StorageObject],
    placed: list[tuple[Pod, str]],
    pod: Pod,
    node_name: str,
) -> None:
    """The what-if removes some pods of a node and adds another one."""
    cluster = _cluster(objects, placed, pod)
    snapshot = cluster.snapshot()
    row = snapshot.row_of(node_name)
    assert row is not None
    here = list(snapshot.pods_on(node_name))
    before = _volume_counts(snapshot.volume_use)
    what_if = WhatIfSnapshot(snapshot, here[:2], [cluster.info(pod)], row)
    shown = _attached(what_if)
    conflicts = what_if.volume_use.conflicts(pod.spec.volumes)
    assert _volume_counts(snapshot.volume_use) == before
    for gone in here[:2]:
        cluster.remove_pod(gone.uid)
    cluster.bind(pod, node_name)
    after = cluster.snapshot()
    assert _attached(after) == shown
    then_conflicts = after.volume_use.conflicts(pod.spec.volumes)
    assert (conflicts is None) == (then_conflicts is None)
    if conflicts is not None and then_conflicts is not None:
        assert conflicts.tolist() == then_conflicts.tolist()


def _attached(snapshot: Snapshot) -> dict[str, dict[str, int]]:
    """By driver, the nodes with attached volumes and their numbers."""
    found: dict[str, dict[str, int]] = {}
    for driver in (DRIVER, "ebs.csi.aws.com"):
        counts = snapshot.volume_use.attached(driver)
        rows = [] if counts is None else counts.nonzero()[0].tolist()
        found[driver] = {
            snapshot.node_names[row]: int(counts[row]) for row in rows if counts is not None
        }
    return found
