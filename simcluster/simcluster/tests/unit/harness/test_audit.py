"""The audit of a cluster's objects finds overcommitted nodes and refused pods."""

from simcluster.harness.audit import ClusterState, overcommitted_nodes, refused_pods
from stowage.api.objects.pod import Pod, PodStatus
from tests.support.builders import make_node, make_pod


def test_a_full_node_is_not_overcommitted() -> None:
    state = ClusterState([make_node("n", cpu="2")], [make_pod("p", cpu="2", node="n")])
    assert overcommitted_nodes(state) == []


def test_an_overcommitted_node_is_reported_with_the_resource() -> None:
    pods = [make_pod(name, cpu="1500m", node="n") for name in ("a", "b")]
    state = ClusterState([make_node("n", cpu="2")], pods)
    assert overcommitted_nodes(state) == ["node n: cpu 3000 requested of 2000"]


def test_too_many_pods_overcommit_a_node() -> None:
    pods = [make_pod(name, node="n") for name in ("a", "b")]
    assert overcommitted_nodes(ClusterState([make_node("n", pods=1)], pods)) == [
        "node n: pods 2 requested of 1"
    ]


def test_a_pod_with_an_extended_resource_overcommits_a_node_without_it() -> None:
    state = ClusterState(
        [make_node("n")], [make_pod("p", requests={"example.com/gpu": 1}, node="n")]
    )
    assert overcommitted_nodes(state) == ["node n: example.com/gpu 1 requested of 0"]


def test_unbound_and_finished_pods_use_no_resources() -> None:
    finished = Pod(
        make_pod("f").metadata,
        make_pod("f", cpu="9", node="n").spec,
        PodStatus(phase="Succeeded"),
    )
    state = ClusterState([make_node("n", cpu="1")], [finished, make_pod("p", cpu="9")])
    assert overcommitted_nodes(state) == []


def test_pods_on_a_node_that_does_not_exist_are_reported() -> None:
    assert overcommitted_nodes(ClusterState([], [make_pod("p", node="gone")])) == [
        "node gone has pods and does not exist"
    ]


def test_a_pod_refused_by_its_kubelet_is_reported() -> None:
    refused = Pod(make_pod("p").metadata, make_pod("p", node="n").spec, PodStatus(phase="Failed"))
    assert refused_pods([refused, make_pod("q", node="n")]) == ["pod default/p failed on node n"]
