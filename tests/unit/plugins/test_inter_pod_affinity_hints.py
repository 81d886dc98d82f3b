"""InterPodAffinity: events and hints."""

from __future__ import annotations

import pytest

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.plugins.inter_pod_affinity import InterPodAffinity
from stowage.plugins.inter_pod_affinity.hints import after_node_change, after_pod_change
from tests.support.builders import ZONE, affinity_term, make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.unit.plugins.pod_affinity import DB, NEAR_WEB, far, near, web


def test_it_registers_for_the_events_that_upstream_names_and_for_namespaces() -> None:
    events = [registered.event for registered in InterPodAffinity().events_to_register()]
    pods = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE
    nodes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
    assert events == [
        ClusterEvent(EventResource.POD, pods),
        ClusterEvent(EventResource.NODE, nodes),
        ClusterEvent(EventResource.NAMESPACE, ActionType.UPDATE),
    ]


WANTS_WEB = make_pod("p", affinity=near(NEAR_WEB))
WEB_NEAR_WEB = make_pod("p", labels={"app": "web"}, affinity=near(NEAR_WEB))
AVOIDS_WEB = make_pod("p", affinity=far(NEAR_WEB))
PLAIN_DB = make_pod("p", labels={"app": "db"})
OTHER = make_pod("web-0", labels={"app": "other"}, node="a1")
GUARD = web("a1", affinity=far(affinity_term(ZONE, DB)))
POD_HINT_CASES: dict[str, tuple[Pod, Pod | None, Pod | None, QueueingHint]] = {
    "a pod that matches the affinity was placed": (WANTS_WEB, None, web("a1"), QueueingHint.QUEUE),
    "some other pod was placed": (WANTS_WEB, None, OTHER, QueueingHint.SKIP),
    "a pod that matches the affinity is still pending": (
        WANTS_WEB,
        None,
        web(""),
        QueueingHint.SKIP,
    ),
    "a placed pod came to match the affinity": (WANTS_WEB, OTHER, web("a1"), QueueingHint.QUEUE),
    "a placed pod no longer matches the affinity": (WANTS_WEB, web("a1"), OTHER, QueueingHint.SKIP),
    "a placed pod goes on matching the affinity": (
        WANTS_WEB,
        web("a1"),
        make_pod("web-0", labels={"app": "web", "version": "2"}, node="a1"),
        QueueingHint.SKIP,
    ),
    "a pod that matches the affinity was deleted": (WANTS_WEB, web("a1"), None, QueueingHint.SKIP),
    "a matching pod was deleted, and the pod matches its own affinity": (
        WEB_NEAR_WEB,
        web("a1"),
        None,
        QueueingHint.QUEUE,
    ),
    "a matching pod changed, and the pod matches its own affinity": (
        WEB_NEAR_WEB,
        web("a1"),
        OTHER,
        QueueingHint.QUEUE,
    ),
    "another pod was deleted, and the pod matches its own affinity": (
        WEB_NEAR_WEB,
        OTHER,
        None,
        QueueingHint.SKIP,
    ),
    "a pod that matches the anti-affinity was deleted": (
        AVOIDS_WEB,
        web("a1"),
        None,
        QueueingHint.QUEUE,
    ),
    "a pod that matches the anti-affinity was placed": (
        AVOIDS_WEB,
        None,
        web("a1"),
        QueueingHint.SKIP,
    ),
    "a placed pod no longer matches the anti-affinity": (
        AVOIDS_WEB,
        web("a1"),
        OTHER,
        QueueingHint.QUEUE,
    ),
    "some other pod was deleted": (AVOIDS_WEB, OTHER, None, QueueingHint.SKIP),
    "a placed pod with anti-affinity to the pod was deleted": (
        PLAIN_DB,
        GUARD,
        None,
        QueueingHint.QUEUE,
    ),
    "the rejected pod itself changed labels": (
        PLAIN_DB,
        PLAIN_DB,
        make_pod("p", labels={"app": "web"}),
        QueueingHint.QUEUE,
    ),
}


@pytest.mark.parametrize("sentence", POD_HINT_CASES)
def test_hint_after_a_pod_change(sentence: str) -> None:
    pod, old, new, want = POD_HINT_CASES[sentence]
    info = MirroredCluster().info
    before = None if old is None else info(old)
    after = None if new is None else info(new)
    assert after_pod_change(info(pod), before, after) is want


ZONED, UNZONED = make_node("n", zone="a"), make_node("n")
NODE_HINT_CASES: dict[str, tuple[Pod, Node | None, Node | None, QueueingHint]] = {
    "a node with a zone was added": (WANTS_WEB, None, ZONED, QueueingHint.QUEUE),
    "a node without a zone was added": (WANTS_WEB, None, UNZONED, QueueingHint.SKIP),
    "a node got a zone": (WANTS_WEB, UNZONED, ZONED, QueueingHint.QUEUE),
    "a node changed zones": (WANTS_WEB, ZONED, make_node("n", zone="b"), QueueingHint.QUEUE),
    "a node lost its zone": (WANTS_WEB, ZONED, UNZONED, QueueingHint.SKIP),
    "a node was added, for a pod with anti-affinity": (
        AVOIDS_WEB,
        None,
        UNZONED,
        QueueingHint.QUEUE,
    ),
    "a node lost its zone, for a pod with anti-affinity": (
        AVOIDS_WEB,
        ZONED,
        UNZONED,
        QueueingHint.QUEUE,
    ),
    "a node got a zone, for a pod with anti-affinity": (
        AVOIDS_WEB,
        UNZONED,
        ZONED,
        QueueingHint.SKIP,
    ),
    "a node was added, for a pod that placed pods have anti-affinity to": (
        PLAIN_DB,
        None,
        ZONED,
        QueueingHint.QUEUE,
    ),
    "a node changed zones, for a pod that placed pods have anti-affinity to": (
        PLAIN_DB,
        ZONED,
        make_node("n", zone="b"),
        QueueingHint.QUEUE,
    ),
    "a node was deleted": (WANTS_WEB, ZONED, None, QueueingHint.SKIP),
}


@pytest.mark.parametrize("sentence", NODE_HINT_CASES)
def test_hint_after_a_node_change(sentence: str) -> None:
    pod, old, new, want = NODE_HINT_CASES[sentence]
    assert after_node_change(MirroredCluster().info(pod), old, new) is want
