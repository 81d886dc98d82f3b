"""InterPodAffinity."""

from __future__ import annotations

from msgspec.structs import replace

from stowage.api.objects.pod import Affinity
from tests.stories.requeue_cases.case import (
    NO_PODS,
    Delete,
    Put,
    RequeueCase,
    apart,
    near,
    node,
    only,
    placed,
    pod,
    pods_with,
    wants_node,
)
from tests.support.builders import label_selector, make_namespace

PODS = ("InterPodAffinity",)
A, B = {"a": "1"}, {"b": "1"}
ON_N = {"node": "n"}


def apart_from(key: str, topology_key: str = "node") -> Affinity:
    """Anti-affinity to pods with this label."""
    return apart(pods_with(key, topology_key))


def near_to(key: str, topology_key: str = "node") -> Affinity:
    """Affinity to pods with this label."""
    return near(pods_with(key, topology_key))


def in_team(name: str) -> Affinity:
    """Affinity to pods with label a in a team's namespaces."""
    selector = label_selector({"team": name})
    return near(pods_with("a", "node", namespace_selector=selector))


def apart_from_team(name: str) -> Affinity:
    """Anti-affinity to pods with label a in a team's namespaces."""
    selector = label_selector({"team": name})
    return apart(pods_with("a", "node", namespace_selector=selector))


def near_in_group(key: str, topology_key: str, group: str) -> Affinity:
    """Affinity to pods with this label, on nodes of a group."""
    return replace(
        wants_node("group", "In", group), pod_affinity=near_to(key, topology_key).pod_affinity
    )


ANTI_AFFINITY_CASES = (
    RequeueCase(
        "a node without pods is added",
        PODS,
        objects=[node(labels=ON_N), placed("r", "n", A, affinity=apart_from("a"))],
        pending=[pod("p", A, affinity=apart_from("a"))],
        trigger=[Put(node("m", {"node": "m"}))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a placed pod loses the label of an anti-affinity term",
        PODS,
        objects=[node(labels=ON_N), placed("r", "n", A | B)],
        pending=[pod("p", A, affinity=apart_from("a")), pod("q", B, affinity=apart_from("b"))],
        trigger=[Put(placed("r", "n", B))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a placed pod that matches an anti-affinity term is deleted",
        PODS,
        objects=[node(labels=ON_N), placed("r", "n", A), placed("s", "n", B)],
        pending=[pod("p", A, affinity=apart_from("a")), pod("q", B, affinity=apart_from("b"))],
        trigger=[Delete(placed("r", "n", A))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the namespace of a placed pod's anti-affinity term loses its label",
        PODS,
        objects=[
            node(labels=ON_N),
            make_namespace("default", labels={"team": "red"}),
            placed("r", "n", affinity=apart_from_team("red"), namespace="elsewhere"),
        ],
        pending=[pod("p", A)],
        trigger=[Put(make_namespace("default"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a placed pod with an anti-affinity term is deleted",
        PODS,
        objects=[
            node(labels=ON_N),
            placed("r", "n", affinity=apart_from("a")),
            placed("s", "n", affinity=apart_from("b")),
        ],
        pending=[pod("p", A), pod("q", B)],
        trigger=[Delete(placed("r", "n", affinity=apart_from("a")))],
        requeued=only("p"),
    ),
    RequeueCase(
        "an unrelated placed pod is deleted",
        PODS,
        objects=[node(labels=ON_N), placed("r", "n", A), placed("s", "n", B)],
        pending=[pod("p", affinity=apart_from("a"))],
        trigger=[Delete(placed("s", "n", B))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a placed pod of another namespace is deleted",
        PODS,
        objects=[
            node(labels=ON_N),
            placed("r", "n", A),
            placed("s", "n", A, namespace="elsewhere"),
        ],
        pending=[pod("p", affinity=apart_from("a"))],
        trigger=[Delete(placed("s", "n", A, namespace="elsewhere"))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the node's topology label is removed or changes",
        PODS,
        objects=[
            node(labels={"node": "n", "service": "x", "other": "n"}),
            placed("r", "n", A),
        ],
        pending=[
            pod("p", A, affinity=apart_from("a", "node")),
            pod("q", A, affinity=apart_from("a", "service")),
            pod("s", A, affinity=apart_from("a", "other")),
        ],
        trigger=[Put(node(labels={"service": "y", "region": "n", "other": "n"}))],
        requeued=only("p", "q"),
    ),
    RequeueCase(
        "a node with any labels is added",
        PODS,
        objects=[node(labels={"zone": "z", "node": "n"}), placed("r", "n", A)],
        pending=[
            pod("p", affinity=apart_from("a", "zone")),
            pod("q", affinity=apart_from("a", "node")),
        ],
        trigger=[Put(node("m", {"zone": "z"}))],
        requeued=only("p", "q"),
    ),
    RequeueCase(
        "a node without the pods of an anti-affinity term is added",
        PODS,
        objects=[node(labels=ON_N), placed("r", "n", affinity=apart_from("a"))],
        pending=[pod("p", A)],
        trigger=[Put(node("m", {"node": "m"}))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the node gets more resources, which were not missing",
        PODS,
        objects=[node(labels=ON_N), placed("r", "n", A)],
        pending=[pod("p", affinity=apart_from("a"))],
        trigger=[Put(node(cpu="8", labels=ON_N))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a placed pod requests less, which was not missing",
        PODS,
        objects=[node(labels=ON_N), placed("r", "n", A, cpu="2")],
        pending=[pod("p", affinity=apart_from("a"))],
        trigger=[Put(placed("r", "n", A, cpu="1"))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the pod's own labels change",
        PODS,
        objects=[node(labels=ON_N), placed("r", "n", affinity=apart_from("a"))],
        pending=[pod("p", A), pod("q", A)],
        trigger=[Put(pod("p", B))],
        requeued=only("p"),
    ),
)

AFFINITY_CASES = (
    RequeueCase(
        "a placed pod gets the label of an affinity term",
        PODS,
        objects=[node(labels=ON_N), placed("r", "n")],
        pending=[pod("p", affinity=near_to("a")), pod("q", affinity=near_to("b"))],
        trigger=[Put(placed("r", "n", A))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a pod that matches an affinity term is placed",
        PODS,
        objects=[node(labels=ON_N)],
        pending=[pod("p", affinity=near_to("a")), pod("q", affinity=near_to("b"))],
        trigger=[Put(placed("r", "n", A))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a pod that satisfies one of two terms is placed",
        PODS,
        objects=[node(labels=ON_N)],
        pending=[pod("p", affinity=near(pods_with("a", "node"), pods_with("b", "node")))],
        trigger=[Put(placed("r", "n", A))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a pod that satisfies both terms is placed",
        PODS,
        objects=[node(labels=ON_N)],
        pending=[pod("p", affinity=near(pods_with("a", "node"), pods_with("b", "node")))],
        trigger=[Put(placed("r", "n", A | B))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a matching pod of another namespace is placed",
        PODS,
        objects=[node(labels=ON_N)],
        pending=[
            pod("p", affinity=near_to("a")),
            pod("q", affinity=near(pods_with("a", "node", namespaces=["elsewhere"]))),
        ],
        trigger=[Put(placed("r", "n", A, namespace="elsewhere"))],
        requeued=only("q"),
    ),
    RequeueCase(
        "a matching pod is placed in a namespace that has the selected label",
        PODS,
        objects=[node(labels=ON_N), make_namespace("red", labels={"team": "red"})],
        pending=[pod("p", affinity=in_team("red"))],
        trigger=[Put(placed("r", "n", A, namespace="red"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the namespace of a matching pod gets the selected label",
        PODS,
        objects=[node(labels=ON_N), make_namespace("red"), placed("r", "n", A, namespace="red")],
        pending=[pod("p", affinity=in_team("red")), pod("q", affinity=in_team("blue"))],
        trigger=[Put(make_namespace("red", labels={"team": "red"}))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a namespace changes a label that no term selects",
        PODS,
        objects=[node(labels=ON_N), make_namespace("red", labels={"team": "red"})],
        pending=[pod("p", affinity=in_team("red"))],
        trigger=[Put(make_namespace("red", labels={"team": "red", "tier": "1"}))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a matching pod without a node is created",
        PODS,
        objects=[node(labels=ON_N)],
        pending=[pod("p", affinity=near_to("a"))],
        trigger=[Put(pod("r", A, gates=["quota"]))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a matching pod is deleted",
        PODS,
        objects=[node(), placed("r", "n", A)],
        pending=[pod("p", affinity=near_to("a", "rack"))],
        trigger=[Delete(placed("r", "n", A))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the only pod that matches its own affinity term is deleted",
        ("InterPodAffinity", "NodeUnschedulable"),
        objects=[
            node(labels=ON_N, unschedulable=True),
            node("m", {"node": "m"}),
            placed("r", "n", A),
        ],
        pending=[pod("p", A, affinity=near_to("a")), pod("q", B, affinity=near_to("a"))],
        trigger=[Delete(placed("r", "n", A))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node with the topology label is added",
        PODS,
        objects=[node(labels={"x": "n"})],
        pending=[
            pod("p", affinity=near_to("b", "zone")),
            pod("q", affinity=near_to("c", "region")),
        ],
        trigger=[Put(node("m", {"zone": "z"}))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node gets the topology label, or another value of it",
        ("InterPodAffinity", "NodeAffinity"),
        objects=[
            node(labels={"region": "1"}),
            node("m", {"region": "2", "group": "b"}),
            placed("r", "n", A),
        ],
        pending=[
            pod("p", A, affinity=near_to("a", "node")),
            pod("q", A, affinity=near_to("a", "other")),
            pod("s", affinity=near_in_group("a", "region", "b")),
        ],
        trigger=[Put(node(labels={"node": "n", "region": "2"}))],
        requeued=only("p", "s"),
    ),
    RequeueCase(
        "labels of a node change, but not the topology label",
        PODS,
        objects=[node(labels={"zone": "z"})],
        pending=[pod("p", affinity=near_to("a", "zone"))],
        trigger=[Put(node(labels={"zone": "z", "rack": "1"}))],
        requeued=NO_PODS,
    ),
)
