"""NodeAffinity."""

from __future__ import annotations

from stowage.api.objects.pod import Pod
from tests.stories.requeue_cases.case import (
    NOBODY,
    Delete,
    Put,
    RequeueCase,
    node,
    only,
    pod,
    taint,
    wants_node,
    wants_node_named,
)

AFFINITY = ("NodeAffinity",)
WITH_FIT = ("NodeAffinity", "NodeResourcesFit")


def in_group(name: str, group: str, cpu: str | None = None) -> Pod:
    """A pod that goes to nodes of a group only."""
    return pod(name, affinity=wants_node("group", "In", group), cpu=cpu)


NODE_AFFINITY_CASES = (
    RequeueCase(
        "a node's label becomes one that a pod asks for",
        AFFINITY,
        objects=[node(labels={"group": "a"})],
        pending=[in_group("p", "b"), in_group("q", "c")],
        trigger=[Put(node(labels={"group": "b"}))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node that matched before matches still",
        WITH_FIT,
        objects=[node(cpu="2", labels={"group": "a"}), node("m", labels={"group": "b"})],
        pending=[in_group("p", "a", cpu="4")],
        trigger=[Put(node(cpu="2", labels={"group": "a", "rack": "1"}))],
        requeued=NOBODY,
    ),
    RequeueCase(
        "a matching node joins",
        AFFINITY,
        objects=[node(labels={"group": "a"})],
        pending=[in_group("p", "b"), in_group("q", "c")],
        trigger=[Put(node("m", labels={"group": "b"}))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node matches the pod's node selector at last",
        AFFINITY,
        objects=[node()],
        pending=[pod("p", node_selector={"disk": "ssd"}), pod("q", node_selector={"disk": "hdd"})],
        trigger=[Put(node(labels={"disk": "ssd"}))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the node with the name that a pod asks for joins",
        AFFINITY,
        objects=[node()],
        pending=[
            pod("p", affinity=wants_node_named("m")),
            pod("q", affinity=wants_node_named("o")),
        ],
        trigger=[Put(node("m"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a label that a pod shuns goes",
        AFFINITY,
        objects=[node(labels={"spot": "yes"})],
        pending=[pod("p", affinity=wants_node("spot", "DoesNotExist"))],
        trigger=[Put(node())],
        requeued=only("p"),
    ),
    RequeueCase(
        "a number on a node grows beyond what a pod asks for",
        AFFINITY,
        objects=[node(labels={"cores": "8"})],
        pending=[
            pod("p", affinity=wants_node("cores", "Gt", "15")),
            pod("q", affinity=wants_node("cores", "Gt", "16")),
        ],
        trigger=[Put(node(labels={"cores": "16"}))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node's labels change to other wrong ones",
        AFFINITY,
        objects=[node(labels={"group": "a"})],
        pending=[in_group("p", "b")],
        trigger=[Put(node(labels={"group": "c"}))],
        requeued=NOBODY,
    ),
    RequeueCase(
        "any node's taints change, for a node may join before it is ready",
        AFFINITY,
        objects=[node(labels={"group": "a"})],
        pending=[in_group("p", "b")],
        trigger=[Put(node(labels={"group": "a"}, taints=[taint("x")]))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node that does not match goes",
        AFFINITY,
        objects=[node(labels={"group": "a"}), node("m")],
        pending=[in_group("p", "b")],
        trigger=[Delete(node("m"))],
        requeued=NOBODY,
    ),
    RequeueCase(
        "the pod's own labels do not matter to its node affinity",
        AFFINITY,
        objects=[node(labels={"group": "a"})],
        pending=[in_group("p", "b")],
        trigger=[Put(pod("p", {"key": "value"}, affinity=wants_node("group", "In", "b")))],
        requeued=NOBODY,
    ),
    RequeueCase(
        "a pod that PreFilter and Filter rejected is tried for the sake of either",
        WITH_FIT,
        objects=[
            node(cpu="2", labels={"name": "n"}),
            node("m", cpu="2", labels={"name": "m", "zone": "z"}),
        ],
        pending=[pod("p", cpu="4", affinity=wants_node_named("n"))],
        trigger=[Put(node(cpu="4", labels={"metadata.name": "n"}))],
        requeued=only("p"),
    ),
)
