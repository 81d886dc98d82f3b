from __future__ import annotations

import msgspec
import pytest

from stowage.api.cluster_events import QueueingHint
from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.objects.pod import ContainerRestartRule, Pod
from stowage.api.status import Code
from stowage.framework import NoArgs
from stowage.plugins.node_declared_features import (
    NodeDeclaredFeatures,
    after_node_change,
    after_pod_update,
)
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.unit.plugins.single_plugin import pre_filter, refused

PLUGIN = NodeDeclaredFeatures(NoArgs())
HOST_USERS = "UserNamespacesHostNetworkSupport"
RESTART = "RestartAllContainersOnContainerExits"


def _restarting(action: str) -> Pod:
    pod = make_pod("p")
    rules = (ContainerRestartRule(action),)
    container = msgspec.structs.replace(pod.spec.containers[0], restart_policy_rules=rules)
    spec = msgspec.structs.replace(pod.spec, containers=(container,))
    return msgspec.structs.replace(pod, spec=spec)


@pytest.fixture
def cluster() -> MirroredCluster:
    return MirroredCluster(
        [
            make_node("n0"),
            make_node("n1", declared_features=[HOST_USERS]),
            make_node("n2", declared_features=[RESTART, HOST_USERS]),
        ]
    )


@pytest.mark.parametrize(
    "pod",
    [
        make_pod("p"),
        make_pod("p", host_network=True),
        make_pod("p", host_network=True, host_users=True),
        make_pod("p", host_users=False),
        _restarting("Restart"),
    ],
)
def test_a_pod_without_required_features_is_skipped(cluster: MirroredCluster, pod: Pod) -> None:
    assert pre_filter(PLUGIN, cluster, pod).status.is_skip


def test_every_pod_is_skipped_with_the_gate_off(cluster: MirroredCluster) -> None:
    off = NodeDeclaredFeatures(NoArgs(), parse_feature_gates(["AllBeta=false"]))
    pod = make_pod("p", host_network=True, host_users=False)
    assert pre_filter(off, cluster, pod).status.is_skip


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        (make_pod("p", host_network=True, host_users=False), ["n0"]),
        (_restarting("RestartAllContainers"), ["n0", "n1"]),
    ],
)
def test_a_node_must_declare_the_features_that_the_pod_requires(
    cluster: MirroredCluster, pod: Pod, want: list[str]
) -> None:
    found = refused(PLUGIN, cluster, pod)
    assert sorted(found) == want
    assert found["n0"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert found["n0"].reasons == ("node(s) didn't match Pod's required features",)


def test_only_changed_declared_features_of_a_node_queue_a_pod(cluster: MirroredCluster) -> None:
    pod = cluster.info(make_pod("p"))
    bare, featured = make_node("n0"), make_node("n0", declared_features=[RESTART])
    assert after_node_change(pod, bare, bare) is QueueingHint.SKIP
    assert after_node_change(pod, bare, featured) is QueueingHint.QUEUE
    assert after_node_change(pod, None, featured) is QueueingHint.QUEUE


def test_only_changed_required_features_of_the_pod_itself_queue_it(
    cluster: MirroredCluster,
) -> None:
    plain = cluster.info(make_pod("p"))
    demanding = cluster.info(make_pod("p", host_network=True, host_users=False))
    other = cluster.info(make_pod("q", host_network=True, host_users=False))
    assert after_pod_update(plain, demanding, plain) is QueueingHint.QUEUE
    assert after_pod_update(plain, plain, plain) is QueueingHint.SKIP
    assert after_pod_update(plain, plain, other) is QueueingHint.SKIP
    assert after_pod_update(plain, None, demanding) is QueueingHint.SKIP
    assert after_pod_update(plain, demanding, None) is QueueingHint.SKIP
