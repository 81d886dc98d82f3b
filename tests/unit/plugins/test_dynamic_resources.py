from __future__ import annotations

from stowage.api.objects.pod import PodResourceClaim
from stowage.api.status import Code
from stowage.api.values.duration import Duration
from stowage.framework import CycleState, Diagnosis
from stowage.plugins.dynamic_resources import DynamicResources, DynamicResourcesArgs
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes
from tests.unit.plugins.single_plugin import pre_filter

PLUGIN = DynamicResources(DynamicResourcesArgs())


def test_a_pod_without_claims_passes_with_equal_scores() -> None:
    cluster = MirroredCluster([make_node("n0"), make_node("n1")])
    pod = make_pod("p")
    assert PLUGIN.pre_enqueue(cluster.info(pod)).is_success
    assert pre_filter(PLUGIN, cluster, pod).status.is_skip
    nodes = existing_nodes(cluster.snapshot())
    assert PLUGIN.score(CycleState(), cluster.info(pod), nodes).tolist() == [0, 0]


def test_a_pod_with_claims_is_rejected_because_they_are_not_allocated() -> None:
    cluster = MirroredCluster([make_node("n0")])
    status = pre_filter(PLUGIN, cluster, make_pod("p", resource_claims=(PodResourceClaim("gpu"),)))
    assert status.status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert "resource claims" in status.status.message


def test_post_filter_has_nothing_to_deallocate() -> None:
    cluster = MirroredCluster([make_node("n0")])
    pod, snapshot, state = cluster.info(make_pod("p")), cluster.snapshot(), CycleState()
    status, node_name = PLUGIN.post_filter(state, pod, snapshot, Diagnosis(1))
    assert (status.code, status.message, node_name) == (Code.ERROR, "not found", None)
    PLUGIN.pre_filter(state, pod, snapshot)
    status, node_name = PLUGIN.post_filter(state, pod, snapshot, Diagnosis(1))
    assert (status.code, node_name) == (Code.UNSCHEDULABLE, None)
    assert status.message == "no new claims to deallocate"


def test_timeouts_must_not_be_negative() -> None:
    errors = DynamicResourcesArgs(filter_timeout=Duration(-1)).validate()
    assert [error.path for error in errors] == ["filterTimeout"]
