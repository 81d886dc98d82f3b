"""PodTopologySpread."""

from __future__ import annotations

from collections.abc import Sequence

from stowage.api.objects.pod import Pod, Toleration
from tests.stories.requeue_cases.case import (
    NO_PODS,
    Delete,
    Put,
    RequeueCase,
    node,
    only,
    placed,
    pod,
    spread,
    taint,
    tolerates,
)

SPREAD = ("PodTopologySpread",)
A, B = {"a": "1"}, {"b": "1"}
ON_N = {"node": "n"}


def spreading(
    name: str,
    key: str,
    topology_key: str,
    domains: int = 3,
    tolerations: Sequence[Toleration] = (),
) -> Pod:
    """A pod with this label that spreads over the values of a node label."""
    constraints = spread(key, topology_key, domains)
    return pod(name, {key: "1"}, topology_spread_constraints=constraints, tolerations=tolerations)


TWO_SPREAD = [spreading("p", "a", "node"), spreading("q", "b", "node")]
TWO_PLACED = [node(labels=ON_N), placed("r", "n", A), placed("s", "n", B)]

SPREAD_BY_PODS = (
    RequeueCase(
        "a pod with the label is placed",
        SPREAD,
        objects=TWO_PLACED,
        pending=TWO_SPREAD,
        trigger=[Put(placed("t", "n", A))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a pod without the label is placed",
        SPREAD,
        objects=TWO_PLACED,
        pending=TWO_SPREAD,
        trigger=[Put(placed("t", "n", {"c": "1"}))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a pod with the label and without a node is created",
        SPREAD,
        objects=TWO_PLACED,
        pending=TWO_SPREAD,
        trigger=[Put(pod("t", A, gates=["quota"]))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a placed pod loses the label",
        SPREAD,
        objects=TWO_PLACED,
        pending=TWO_SPREAD,
        trigger=[Put(placed("r", "n", {"c": "1"}))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a placed pod gets the label",
        SPREAD,
        objects=[*TWO_PLACED, placed("t", "n")],
        pending=TWO_SPREAD,
        trigger=[Put(placed("t", "n", A))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a placed pod with the label requests less",
        SPREAD,
        objects=[node(labels=ON_N), placed("r", "n", A, cpu="2")],
        pending=[spreading("p", "a", "node")],
        trigger=[Put(placed("r", "n", A, cpu="1"))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a placed pod with the label is deleted",
        SPREAD,
        objects=TWO_PLACED,
        pending=TWO_SPREAD,
        trigger=[Delete(placed("r", "n", A))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a placed pod without the label is deleted",
        SPREAD,
        objects=[*TWO_PLACED, placed("t", "n")],
        pending=TWO_SPREAD,
        trigger=[Delete(placed("t", "n"))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the pod's own labels change",
        SPREAD,
        objects=TWO_PLACED,
        pending=TWO_SPREAD,
        trigger=[Put(pod("p", {"c": "1"}, topology_spread_constraints=spread("a", "node", 3)))],
        requeued=only("p"),
    ),
)

SPREAD_BY_NODES = (
    RequeueCase(
        "a node with the topology label is added",
        SPREAD,
        objects=[
            node(labels=ON_N),
            node("m", {"zone": "z"}),
            placed("r", "n", A),
            placed("s", "m", A),
        ],
        pending=[spreading("p", "a", "node", 2), spreading("q", "a", "zone", 2)],
        trigger=[Put(node("o", {"node": "o"}))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node gets, loses or changes the topology label",
        SPREAD,
        objects=[
            node(labels={"node": "n", "region": "n", "service": "x"}),
            node("m", {"node": "n", "region": "n", "service": "x"}),
            placed("r", "n", A),
            *(placed(f"s{number}", "m", A) for number in range(3)),
        ],
        pending=[
            spreading("loses", "a", "node"),
            spreading("gets", "a", "zone"),
            spreading("keeps", "a", "region"),
            spreading("lacks", "a", "other"),
            spreading("changes", "a", "service"),
        ],
        trigger=[Put(node("m", {"zone": "n", "region": "n", "service": "y"}))],
        requeued=only("loses", "gets", "changes"),
    ),
    RequeueCase(
        "a node with the topology label is deleted",
        SPREAD,
        objects=[
            node(labels=ON_N),
            node("m", {"zone": "n"}),
            placed("r", "n", A),
            placed("s", "m", A),
        ],
        pending=[spreading("p", "a", "node"), spreading("q", "a", "zone")],
        trigger=[Delete(node("m", {"zone": "n"}))],
        requeued=only("q"),
    ),
    RequeueCase(
        "the taints of a node with the topology label change",
        SPREAD,
        objects=[
            node(labels=ON_N),
            node("m", {"zone": "n"}),
            node("o", {"zone": "n"}, taints=[taint("not-ready")]),
            placed("r", "n", A),
            placed("s", "m", A),
        ],
        pending=[
            spreading("p", "a", "node"),
            spreading("q", "a", "zone", tolerations=[tolerates("x")]),
        ],
        trigger=[Put(node("o", {"zone": "n"}, taints=[taint("x", "y")]))],
        requeued=only("q"),
    ),
    RequeueCase(
        "a node without the topology label changes",
        SPREAD,
        objects=[node(labels=ON_N), node("m"), placed("r", "n", A)],
        pending=[spreading("p", "a", "node")],
        trigger=[Put(node("m", {"rack": "1"}, taints=[taint("x")]))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a node gets more resources, which were not missing",
        SPREAD,
        objects=[node(labels=ON_N), placed("r", "n", A)],
        pending=[spreading("p", "a", "node")],
        trigger=[Put(node(cpu="8", labels=ON_N))],
        requeued=NO_PODS,
    ),
)
