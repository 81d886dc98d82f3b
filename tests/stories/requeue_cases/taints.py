"""TaintToleration and NodeUnschedulable."""

from __future__ import annotations

from tests.stories.requeue_cases.case import (
    NO_PODS,
    Delete,
    Put,
    RequeueCase,
    node,
    only,
    placed,
    pod,
    taint,
    tolerates,
)

TAINTS = ("TaintToleration",)
CORDONS = ("NodeUnschedulable",)
NOT_READY = "node.kubernetes.io/not-ready"
CORDONED = "node.kubernetes.io/unschedulable"

TAINT_CASES = (
    RequeueCase(
        "a toleration added to a pod helps only that pod",
        TAINTS,
        objects=[node(taints=[taint("dedicated")])],
        pending=[pod("p"), pod("q")],
        trigger=[Put(pod("p", tolerations=[tolerates("dedicated")]))],
        requeued=only("p"),
    ),
    RequeueCase(
        "any toleration added to a pod requeues it",
        TAINTS,
        objects=[node(taints=[taint("dedicated")])],
        pending=[pod("p")],
        trigger=[Put(pod("p", tolerations=[tolerates("something-else")]))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node's taint becomes one that a pod tolerates",
        TAINTS,
        objects=[node(taints=[taint(NOT_READY)])],
        pending=[
            pod("p", tolerations=[tolerates("a")]),
            pod("q", tolerations=[tolerates("b")]),
            pod("r"),
        ],
        trigger=[Put(node(taints=[taint("a")]))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node with a tolerated taint is added",
        TAINTS,
        objects=[node(taints=[taint(NOT_READY)])],
        pending=[pod("p", tolerations=[tolerates("a")]), pod("q")],
        trigger=[Put(node("m", taints=[taint("a")]))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node without taints is added",
        TAINTS,
        objects=[node(taints=[taint(NOT_READY)])],
        pending=[pod("p", tolerations=[tolerates("a")]), pod("q")],
        trigger=[Put(node("m"))],
        requeued=only("p", "q"),
    ),
    RequeueCase(
        "the taint is removed",
        TAINTS,
        objects=[node(taints=[taint(NOT_READY)])],
        pending=[pod("p")],
        trigger=[Put(node())],
        requeued=only("p"),
    ),
    RequeueCase(
        "the taint's effect becomes PreferNoSchedule",
        TAINTS,
        objects=[node(taints=[taint("a")])],
        pending=[pod("p")],
        trigger=[Put(node(taints=[taint("a", effect="PreferNoSchedule")]))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the taint's effect becomes NoExecute",
        TAINTS,
        objects=[node(taints=[taint("a")])],
        pending=[pod("p")],
        trigger=[Put(node(taints=[taint("a", effect="NoExecute")]))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "another taint replaces the first",
        TAINTS,
        objects=[node(taints=[taint("a"), taint("b")])],
        pending=[pod("p", tolerations=[tolerates("a")])],
        trigger=[Put(node(taints=[taint("a"), taint("c")]))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the pod's labels do not matter to taints",
        TAINTS,
        objects=[node(taints=[taint(NOT_READY)])],
        pending=[pod("p")],
        trigger=[Put(pod("p", {"key": "value"}))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the tainted node's labels do not matter to taints",
        TAINTS,
        objects=[node(taints=[taint(NOT_READY)])],
        pending=[pod("p")],
        trigger=[Put(node(labels={"key": "value"}, taints=[taint(NOT_READY)]))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "resources freed on a tainted node help only the pod that tolerates it",
        ("TaintToleration", "NodeResourcesFit"),
        objects=[node(cpu="2", taints=[taint(NOT_READY)])],
        pending=[pod("p", cpu="4"), pod("q", cpu="4", tolerations=[tolerates(NOT_READY)])],
        trigger=[Put(node(cpu="4", taints=[taint(NOT_READY)]))],
        requeued=only("q"),
    ),
    RequeueCase(
        "a pod on the tainted node is deleted",
        TAINTS,
        objects=[node(taints=[taint(NOT_READY)]), placed("r", "n")],
        pending=[pod("p")],
        trigger=[Delete(placed("r", "n"))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a tainted node is deleted",
        TAINTS,
        objects=[node(taints=[taint("a")]), node("m", taints=[taint("b")])],
        pending=[pod("p")],
        trigger=[Delete(node("m", taints=[taint("b")]))],
        requeued=NO_PODS,
    ),
)

CORDON_CASES = (
    RequeueCase(
        "the node is uncordoned",
        CORDONS,
        objects=[node(unschedulable=True)],
        pending=[pod("p")],
        trigger=[Put(node())],
        requeued=only("p"),
    ),
    RequeueCase(
        "a schedulable node is added",
        CORDONS,
        objects=[node(unschedulable=True)],
        pending=[pod("p")],
        trigger=[Put(node("m"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "another cordoned node is added",
        CORDONS,
        objects=[node(unschedulable=True)],
        pending=[pod("p")],
        trigger=[Put(node("m", unschedulable=True))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the pod gets a toleration of cordoned nodes",
        CORDONS,
        objects=[node(unschedulable=True)],
        pending=[pod("p"), pod("q")],
        trigger=[Put(pod("p", tolerations=[tolerates(CORDONED)]))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the pod gets another toleration",
        CORDONS,
        objects=[node(unschedulable=True)],
        pending=[pod("p")],
        trigger=[Put(pod("p", tolerations=[tolerates("something-else")]))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the cordoned node changes in other ways",
        CORDONS,
        objects=[node(unschedulable=True)],
        pending=[pod("p")],
        trigger=[Put(node(labels={"key": "value"}, cpu="8", unschedulable=True))],
        requeued=NO_PODS,
    ),
)
