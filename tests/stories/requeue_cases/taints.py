"""TaintToleration and NodeUnschedulable."""

from __future__ import annotations

from tests.stories.requeue_cases.case import (
    NOBODY,
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

TAINT_STORIES = (
    RequeueCase(
        "a toleration of the pod's own helps it and no other pod",
        TAINTS,
        objects=[node(taints=[taint("dedicated")])],
        pending=[pod("p"), pod("q")],
        trigger=[Put(pod("p", tolerations=[tolerates("dedicated")]))],
        requeued=only("p"),
    ),
    RequeueCase(
        "any further toleration of the pod's own is worth a try",
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
        "a node with a tolerated taint joins",
        TAINTS,
        objects=[node(taints=[taint(NOT_READY)])],
        pending=[pod("p", tolerations=[tolerates("a")]), pod("q")],
        trigger=[Put(node("m", taints=[taint("a")]))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node without taints joins",
        TAINTS,
        objects=[node(taints=[taint(NOT_READY)])],
        pending=[pod("p", tolerations=[tolerates("a")]), pod("q")],
        trigger=[Put(node("m"))],
        requeued=only("p", "q"),
    ),
    RequeueCase(
        "the taint goes",
        TAINTS,
        objects=[node(taints=[taint(NOT_READY)])],
        pending=[pod("p")],
        trigger=[Put(node())],
        requeued=only("p"),
    ),
    RequeueCase(
        "the taint no longer keeps pods away",
        TAINTS,
        objects=[node(taints=[taint("a")])],
        pending=[pod("p")],
        trigger=[Put(node(taints=[taint("a", effect="PreferNoSchedule")]))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the taint becomes worse",
        TAINTS,
        objects=[node(taints=[taint("a")])],
        pending=[pod("p")],
        trigger=[Put(node(taints=[taint("a", effect="NoExecute")]))],
        requeued=NOBODY,
    ),
    RequeueCase(
        "a second taint takes the place of the first",
        TAINTS,
        objects=[node(taints=[taint("a"), taint("b")])],
        pending=[pod("p", tolerations=[tolerates("a")])],
        trigger=[Put(node(taints=[taint("a"), taint("c")]))],
        requeued=NOBODY,
    ),
    RequeueCase(
        "the pod's labels do not matter to taints",
        TAINTS,
        objects=[node(taints=[taint(NOT_READY)])],
        pending=[pod("p")],
        trigger=[Put(pod("p", {"key": "value"}))],
        requeued=NOBODY,
    ),
    RequeueCase(
        "the tainted node's labels do not matter to taints",
        TAINTS,
        objects=[node(taints=[taint(NOT_READY)])],
        pending=[pod("p")],
        trigger=[Put(node(labels={"key": "value"}, taints=[taint(NOT_READY)]))],
        requeued=NOBODY,
    ),
    RequeueCase(
        "room on a tainted node helps the pod that tolerates it and no other",
        ("TaintToleration", "NodeResourcesFit"),
        objects=[node(cpu="2", taints=[taint(NOT_READY)])],
        pending=[pod("p", cpu="4"), pod("q", cpu="4", tolerations=[tolerates(NOT_READY)])],
        trigger=[Put(node(cpu="4", taints=[taint(NOT_READY)]))],
        requeued=only("q"),
    ),
    RequeueCase(
        "a pod that goes leaves the taint behind",
        TAINTS,
        objects=[node(taints=[taint(NOT_READY)]), placed("r", "n")],
        pending=[pod("p")],
        trigger=[Delete(placed("r", "n"))],
        requeued=NOBODY,
    ),
    RequeueCase(
        "a tainted node goes",
        TAINTS,
        objects=[node(taints=[taint("a")]), node("m", taints=[taint("b")])],
        pending=[pod("p")],
        trigger=[Delete(node("m", taints=[taint("b")]))],
        requeued=NOBODY,
    ),
)

CORDON_STORIES = (
    RequeueCase(
        "the node is uncordoned",
        CORDONS,
        objects=[node(unschedulable=True)],
        pending=[pod("p")],
        trigger=[Put(node())],
        requeued=only("p"),
    ),
    RequeueCase(
        "a schedulable node joins",
        CORDONS,
        objects=[node(unschedulable=True)],
        pending=[pod("p")],
        trigger=[Put(node("m"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "another cordoned node joins",
        CORDONS,
        objects=[node(unschedulable=True)],
        pending=[pod("p")],
        trigger=[Put(node("m", unschedulable=True))],
        requeued=NOBODY,
    ),
    RequeueCase(
        "the pod comes to tolerate cordons",
        CORDONS,
        objects=[node(unschedulable=True)],
        pending=[pod("p"), pod("q")],
        trigger=[Put(pod("p", tolerations=[tolerates(CORDONED)]))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the pod comes to tolerate something else",
        CORDONS,
        objects=[node(unschedulable=True)],
        pending=[pod("p")],
        trigger=[Put(pod("p", tolerations=[tolerates("something-else")]))],
        requeued=NOBODY,
    ),
    RequeueCase(
        "the cordoned node changes in other ways",
        CORDONS,
        objects=[node(unschedulable=True)],
        pending=[pod("p")],
        trigger=[Put(node(labels={"key": "value"}, cpu="8", unschedulable=True))],
        requeued=NOBODY,
    ),
)
