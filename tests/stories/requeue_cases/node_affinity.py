"""NodeAffinity."""

from __future__ import annotations

from stowage.api.objects.pod import Pod
from tests.stories.requeue_cases.case import (
    NO_PODS,
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
    """A pod that requires nodes of a group."""
    return pod(name, affinity=wants_node("group", "In", group), cpu=cpu)


NODE_AFFINITY_CASES = (
    RequeueCase(
        "a node gets a label that a pod requires",
        AFFINITY,
        objects=[node(labels={"group": "a"})],
        pending=[in_group("p", "b"), in_group("q", "c")],
        trigger=[Put(node(labels={"group": "b"}))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node that matched before still matches",
        WITH_FIT,
        objects=[node(cpu="2", labels={"group": "a"}), node("m", labels={"group": "b"})],
        pending=[in_group("p", "a", cpu="4")],
        trigger=[Put(node(cpu="2", labels={"group": "a", "rack": "1"}))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a matching node is added",
        AFFINITY,
        objects=[node(labels={"group": "a"})],
        pending=[in_group("p", "b"), in_group("q", "c")],
        trigger=[Put(node("m", labels={"group": "b"}))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node comes to match the pod's node selector",
        AFFINITY,
        objects=[node()],
        pending=[pod("p", node_selector={"disk": "ssd"}), pod("q", node_selector={"disk": "hdd"})],
        trigger=[Put(node(labels={"disk": "ssd"}))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the node that a pod requires by name is added",
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
        "a label that a pod excludes is removed",
        AFFINITY,
        objects=[node(labels={"spot": "yes"})],
        pending=[pod("p", affinity=wants_node("spot", "DoesNotExist"))],
        trigger=[Put(node())],
        requeued=only("p"),
    ),
    RequeueCase(
        "a number in a label grows beyond the required one",
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
        "labels of a node change and still do not match",
        AFFINITY,
        objects=[node(labels={"group": "a"})],
        pending=[in_group("p", "b")],
        trigger=[Put(node(labels={"group": "c"}))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the taints of any node change, since an added node may not be ready yet",
        AFFINITY,
        objects=[node(labels={"group": "a"})],
        pending=[in_group("p", "b")],
        trigger=[Put(node(labels={"group": "a"}, taints=[taint("x")]))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node that does not match is deleted",
        AFFINITY,
        objects=[node(labels={"group": "a"}), node("m")],
        pending=[in_group("p", "b")],
        trigger=[Delete(node("m"))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the pod's own labels do not matter to its node affinity",
        AFFINITY,
        objects=[node(labels={"group": "a"})],
        pending=[in_group("p", "b")],
        trigger=[Put(pod("p", {"key": "value"}, affinity=wants_node("group", "In", "b")))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a pod that PreFilter and Filter rejected is retried for either",
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
