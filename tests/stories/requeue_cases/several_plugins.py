"""The default profile, where several plugins reject pods."""

from __future__ import annotations

from tests.stories.requeue_cases.case import (
    NO_PODS,
    Delete,
    Put,
    RequeueCase,
    apart,
    node,
    only,
    placed,
    pod,
    pods_with,
    taint,
    tolerates,
    wants_node,
)

ALL = ()

SEVERAL_PLUGINS_CASES = (
    RequeueCase(
        "two plugins reject one node each, and the first one is fixed",
        ALL,
        objects=[node(cpu="1"), node("m", taints=[taint("x")])],
        pending=[pod("p", cpu="2")],
        trigger=[Put(node("m"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "two plugins reject one node each, and the second one is fixed",
        ALL,
        objects=[node(cpu="1"), node("m", taints=[taint("x")])],
        pending=[pod("p", cpu="2")],
        trigger=[Put(node(cpu="4"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node is added that fits some pods",
        ALL,
        objects=[node(cpu="1", taints=[taint("x")])],
        pending=[
            pod("small", cpu="1"),
            pod("big", cpu="8", tolerations=[tolerates("x")]),
            pod("picky", affinity=wants_node("disk", "In", "ssd"), tolerations=[tolerates("x")]),
        ],
        trigger=[Put(node("m", cpu="4"))],
        requeued=only("small"),
    ),
    RequeueCase(
        "a deleted pod had resources, a port and a label that others need or avoid",
        ALL,
        objects=[
            node(cpu="2", labels={"rack": "1"}),
            placed("r", "n", {"a": "1"}, cpu="1500m", host_ports=[8080]),
        ],
        pending=[
            pod("resources", cpu="1"),
            pod("port", cpu="100m", host_ports=[8080]),
            pod("alone", cpu="100m", affinity=apart(pods_with("a", "rack"))),
            pod("picky", affinity=wants_node("disk", "In", "ssd")),
        ],
        trigger=[Delete(placed("r", "n", {"a": "1"}, cpu="1500m", host_ports=[8080]))],
        requeued=only("resources", "port", "alone"),
    ),
    RequeueCase(
        "a heartbeat of a node requeues no pod",
        ALL,
        objects=[node(cpu="1"), node("m", taints=[taint("x")])],
        pending=[pod("p", cpu="2"), pod("q", affinity=wants_node("disk", "In", "ssd"))],
        trigger=[Put(node(cpu="1"))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "several events happen, and each helps another pod",
        ALL,
        objects=[node(cpu="1", taints=[taint("x")])],
        pending=[
            pod("p"),
            pod("q", cpu="2", tolerations=[tolerates("x")]),
            pod("r", affinity=wants_node("disk", "In", "ssd"), tolerations=[tolerates("x")]),
            pod("s", affinity=wants_node("disk", "In", "hdd"), tolerations=[tolerates("x")]),
        ],
        trigger=[
            Put(pod("p", tolerations=[tolerates("x")])),
            Put(node(cpu="2", taints=[taint("x")])),
            Put(node(cpu="2", labels={"disk": "ssd"}, taints=[taint("x")])),
        ],
        requeued=only("p", "q", "r"),
    ),
)
