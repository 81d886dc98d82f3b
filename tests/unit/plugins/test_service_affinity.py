"""ServiceAffinity: the pods of a service stay together, or apart, by labels of their nodes."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.cluster_events import ActionType, EventResource, QueueingHint
from stowage.api.objects.pod import Pod
from stowage.api.status import Code
from stowage.framework import CycleState
from stowage.plugins.service_affinity import ServiceAffinity, ServiceAffinityArgs, after_pod_change
from tests.support.builders import label_selector, make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes
from tests.unit.plugins.single_plugin import refused

REGION = ServiceAffinity(ServiceAffinityArgs(("region",)))
REGION_AND_ZONE = ServiceAffinity(ServiceAffinityArgs(("region", "zone")))
PLACES = {"n1": ("r1", "z11"), "n2": ("r1", "z12"), "n3": ("r2", "z21"), "n4": ("r2", "z22")}
IN_R2 = {"region": "r2"}
OF_TIER_X = {"app": "web", "tier": "x"}
OF_NO_SERVICE = {"app": "batch"}


def web(name: str, **fields: Any) -> Pod:
    return make_pod(name, **{"labels": {"app": "web"}} | fields)


def a_service(*placed: Pod) -> MirroredCluster:
    """Four nodes in two regions and one in none, pods, and a service of the web pods."""
    nodes = [
        make_node(name, labels={"region": region, "zone": zone})
        for name, (region, zone) in PLACES.items()
    ]
    cluster = MirroredCluster([*nodes, make_node("n5")], placed)
    cluster.update_workload("Service", "default", "web", label_selector({"app": "web"}))
    return cluster


@pytest.mark.parametrize(
    ("plugin", "placed", "pod", "want"),
    [
        (REGION, [], web("p"), []),
        (REGION, [web("a", node="n1")], web("p"), ["n3", "n4", "n5"]),
        (REGION_AND_ZONE, [web("a", node="n1")], web("p"), ["n2", "n3", "n4", "n5"]),
        # The pod's own selector comes first; the service still chooses the other labels.
        (REGION, [web("a", node="n1")], web("p", node_selector=IN_R2), ["n1", "n2", "n5"]),
        (REGION_AND_ZONE, [web("a", node="n1")], web("p", node_selector=IN_R2), [*PLACES, "n5"]),
        # Pods that are not like this one do not choose.
        (REGION, [web("a", node="n1", labels={"app": "db"})], web("p"), []),
        (REGION, [web("a", node="n1", namespace="other")], web("p"), []),
        (REGION, [web("a", node="n1")], web("p", labels=OF_TIER_X), []),
        (REGION, [web("a", node="n1", labels=OF_NO_SERVICE)], web("p", labels=OF_NO_SERVICE), []),
        # A node without the label chooses nothing.
        (REGION, [web("a", node="n5")], web("p"), []),
        (ServiceAffinity(ServiceAffinityArgs()), [web("a", node="n1")], web("p"), []),
    ],
)
def test_a_pod_goes_where_the_first_pod_of_its_service_went(
    plugin: ServiceAffinity, placed: list[Pod], pod: Pod, want: list[str]
) -> None:
    found = refused(plugin, a_service(*placed), pod)
    assert list(found) == want
    for status in found.values():
        assert status.reasons == ("node(s) didn't match service affinity",)
        assert status.code is Code.UNSCHEDULABLE


def scores(cluster: MirroredCluster, pod: Pod, *labels: str) -> dict[str, int]:
    plugin = ServiceAffinity(ServiceAffinityArgs(anti_affinity_labels_preference=labels))
    state, info, nodes = CycleState(), cluster.info(pod), existing_nodes(cluster.snapshot())
    found = plugin.normalize_score(state, info, nodes, plugin.score(state, info, nodes))
    return dict(zip(nodes.names, found.tolist(), strict=True))


@pytest.mark.parametrize(
    ("placed", "labels", "want"),
    [
        ([], ("zone",), [100, 100, 100, 100, 0]),
        # Region r1 has 2 of 3 pods: 3.3 points, cut to 3. Region r2 has 1: 6.
        (["n1", "n2", "n3"], ("region",), [30, 30, 60, 60, 0]),
        (["n1", "n2", "n3"], ("zone",), [60, 60, 60, 100, 0]),
        # The mean of both.
        (["n1", "n2", "n3"], ("region", "zone"), [45, 45, 60, 80, 0]),
        # A pod on a node without the label counts in the whole: half the pods are in r1.
        (["n1", "n5"], ("region",), [50, 50, 100, 100, 0]),
        (["n1"], (), [0, 0, 0, 0, 0]),
    ],
)
def test_values_of_a_label_with_few_pods_of_the_service_score_high(
    placed: list[str], labels: tuple[str, ...], want: list[int]
) -> None:
    pods = [web(f"web-{name}", node=name) for name in placed]
    leaving = web("leaving", node="n4", terminating=True)
    found = scores(a_service(*pods, leaving), web("p"), *labels)
    assert list(found.values()) == want


def test_the_service_whose_name_sorts_first_counts() -> None:
    cluster = a_service(web("w", node="n1", labels=OF_TIER_X), web("v", node="n3"))
    cluster.update_workload("Service", "default", "tier", label_selector({"tier": "x"}))
    pod = web("p", labels=OF_TIER_X)
    assert list(scores(cluster, pod, "region").values()) == [0, 0, 100, 100, 0]


def test_wrong_arguments_are_named() -> None:
    args = ServiceAffinityArgs(("region", "region"), ("zone", "no label"))
    assert [error.path for error in args.validate()] == [
        "affinityLabels[1]",
        "antiAffinityLabelsPreference[1]",
    ]


def test_only_changes_of_affinity_labels_and_of_pods_like_it_queue_a_pod() -> None:
    info = MirroredCluster().info
    pod, bare, zoned = info(web("p")), make_node(labels={"x": "y"}), make_node(labels={"zone": "z"})
    region = make_node(labels={"region": "r"})
    assert REGION.after_node_change(pod, bare, region) is QueueingHint.QUEUE
    assert REGION.after_node_change(pod, bare, zoned) is QueueingHint.SKIP
    assert REGION.after_node_change(pod, None, bare) is QueueingHint.QUEUE
    assert REGION.after_node_change(pod, bare, None) is QueueingHint.QUEUE
    placed, other = info(web("a", node="n")), info(make_pod("b", node="n", labels={"app": "db"}))
    assert after_pod_change(pod, placed, None) is QueueingHint.QUEUE
    assert after_pod_change(pod, None, placed) is QueueingHint.QUEUE
    assert after_pod_change(pod, None, other) is QueueingHint.SKIP
    assert after_pod_change(pod, None, info(web("pending"))) is QueueingHint.SKIP
    assert after_pod_change(pod, pod, info(web("p", labels={}))) is QueueingHint.QUEUE


def test_one_answer_serves_all_pods_of_a_class() -> None:
    assert [each.per_class for each in REGION.events_to_register()] == [True, True]


def test_a_pod_is_tried_again_after_changes_of_nodes_and_of_pods() -> None:
    registered = {each.event.resource: each.event.action for each in REGION.events_to_register()}
    come_or_go = ActionType.ADD | ActionType.DELETE
    assert registered == {
        EventResource.NODE: come_or_go | ActionType.UPDATE_NODE_LABEL,
        EventResource.POD: come_or_go | ActionType.UPDATE_POD_LABEL,
    }
