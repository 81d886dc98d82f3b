"""Registered events and queueing hints of PodTopologySpread."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.objects.node import Node, Taint
from stowage.api.objects.pod import Pod, Toleration, TopologySpreadConstraint
from stowage.plugins.pod_topology_spread import (
    DefaultConstraint,
    PodTopologySpread,
    PodTopologySpreadArgs,
)
from stowage.state.pods.pod_info import PodInfo
from tests.support.builders import ZONE, label_selector, make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.unit.plugins.spread_pods import web

DEDICATED = Taint(key="dedicated", value="db", effect="NoSchedule")


def incoming(node_taints_policy: str | None = None, **fields: Any) -> Pod:
    """A pod to be spread evenly over zones."""
    constraint = TopologySpreadConstraint(
        max_skew=1,
        topology_key=ZONE,
        when_unsatisfiable="DoNotSchedule",
        label_selector=label_selector({"app": "web"}),
        node_taints_policy=node_taints_policy,
    )
    return web("p", topology_spread_constraints=(constraint,), **fields)


def test_it_registers_for_the_events_of_pods_and_nodes_that_upstream_names() -> None:
    registered = PodTopologySpread(PodTopologySpreadArgs()).events_to_register()
    pods = (
        ActionType.ADD
        | ActionType.DELETE
        | ActionType.UPDATE_POD_LABEL
        | ActionType.UPDATE_POD_TOLERATION
    )
    nodes = (
        ActionType.ADD
        | ActionType.DELETE
        | ActionType.UPDATE_NODE_LABEL
        | ActionType.UPDATE_NODE_TAINT
    )
    assert [each.event for each in registered] == [
        ClusterEvent(EventResource.POD, pods),
        ClusterEvent(EventResource.NODE, nodes),
    ]


def hint(
    pod: Pod,
    old: Pod | Node | None,
    new: Pod | Node | None,
    args: PodTopologySpreadArgs | None = None,
) -> QueueingHint:
    """The plugin's hint for a change of a pod or a node."""
    info = MirroredCluster().info
    about_node = isinstance(old, Node) or isinstance(new, Node)
    registered = PodTopologySpread(args).events_to_register()[1 if about_node else 0]
    assert registered.hint is not None

    def seen(thing: Pod | Node | None) -> PodInfo | Node | None:
        return info(thing) if isinstance(thing, Pod) else thing

    return registered.hint(info(pod), seen(old), seen(new))


SPREAD = incoming()
HONORS_TAINTS = incoming("Honor")
ELSEWHERE = web("web-0", "a1", namespace="other")
OTHER = make_pod("web-0", labels={"app": "other"}, node="a1")
ZONED, UNZONED = make_node("n", zone="a"), make_node("n")
HINT_CASES: dict[str, tuple[Pod, Pod | Node | None, Pod | Node | None, QueueingHint]] = {
    "a pod that counts was placed": (SPREAD, None, web("web-0", "a1"), QueueingHint.QUEUE),
    "a pod that does not count was placed": (SPREAD, None, OTHER, QueueingHint.SKIP),
    "a pod of another namespace was placed": (SPREAD, None, ELSEWHERE, QueueingHint.SKIP),
    "a pod that counts is still pending": (SPREAD, None, web("web-0"), QueueingHint.SKIP),
    "a pod that counts was deleted": (SPREAD, web("web-0", "a1"), None, QueueingHint.QUEUE),
    "a pod that does not count was deleted": (SPREAD, OTHER, None, QueueingHint.SKIP),
    "a pod stopped counting": (SPREAD, web("web-0", "a1"), OTHER, QueueingHint.QUEUE),
    "a pod changed something else": (
        SPREAD,
        web("web-0", "a1"),
        web("web-0", "a1", terminating=True),
        QueueingHint.SKIP,
    ),
    "the rejected pod tolerates more, and taints are honoured": (
        HONORS_TAINTS,
        HONORS_TAINTS,
        incoming(
            "Honor",
            tolerations=[Toleration(key="dedicated", operator="Exists")],
        ),
        QueueingHint.QUEUE,
    ),
    "the rejected pod tolerates more, and taints are not honoured": (
        SPREAD,
        SPREAD,
        incoming(tolerations=[Toleration(key="dedicated", operator="Exists")]),
        QueueingHint.SKIP,
    ),
    "a node with a zone was added": (SPREAD, None, ZONED, QueueingHint.QUEUE),
    "a node without a zone was added": (SPREAD, None, UNZONED, QueueingHint.SKIP),
    "a node with a zone was deleted": (SPREAD, ZONED, None, QueueingHint.QUEUE),
    "a node got a zone": (SPREAD, UNZONED, ZONED, QueueingHint.QUEUE),
    "a node lost its zone": (SPREAD, ZONED, UNZONED, QueueingHint.QUEUE),
    "a node changed zones": (SPREAD, ZONED, make_node("n", zone="b"), QueueingHint.QUEUE),
    "a node's taints changed": (
        SPREAD,
        ZONED,
        make_node("n", zone="a", taints=[DEDICATED]),
        QueueingHint.QUEUE,
    ),
    "a node changed some other label": (
        SPREAD,
        ZONED,
        make_node("n", zone="a", labels={"rack": "r1"}),
        QueueingHint.SKIP,
    ),
}


@pytest.mark.parametrize("sentence", HINT_CASES)
def test_a_change_that_may_help_queues_the_pod(sentence: str) -> None:
    pod, old, new, want = HINT_CASES[sentence]
    assert hint(pod, old, new) is want


def test_any_placed_pod_of_the_namespace_queues_a_pod_with_hard_defaults() -> None:
    args = PodTopologySpreadArgs((DefaultConstraint(1, ZONE, "DoNotSchedule"),), "List")
    assert hint(web("p"), None, OTHER, args) is QueueingHint.QUEUE
    assert hint(web("p"), None, ELSEWHERE, args) is QueueingHint.SKIP


@pytest.mark.parametrize(
    ("policy", "want"), [("Honor", QueueingHint.QUEUE), (None, QueueingHint.SKIP)]
)
def test_a_new_toleration_queues_a_pod_whose_hard_defaults_honor_taints(
    policy: str | None, want: QueueingHint
) -> None:
    default = DefaultConstraint(1, ZONE, "DoNotSchedule", node_taints_policy=policy)
    tolerant = web("p", tolerations=[Toleration(key="dedicated", operator="Exists")])
    assert hint(web("p"), web("p"), tolerant, PodTopologySpreadArgs((default,), "List")) is want
