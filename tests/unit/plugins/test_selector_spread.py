"""SelectorSpread: pods of one service or controller go to different nodes and zones."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.values.selectors import NOTHING, Operator, Requirement, selector_from_labels
from stowage.framework import CycleState
from stowage.plugins.selector_spread import AnySelector, SelectorSpread, SelectorSpreadArgs
from tests.support.builders import HOSTNAME, ZONE, label_selector, make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes

REGION = "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"

Workload = tuple[str, LabelSelector | None]
SERVICE: Workload = ("Service", label_selector({"app": "web"}))
BLUE: Workload = ("ReplicaSet", label_selector({"app": "web", "track": "blue"}))
CANARY: Workload = ("ReplicaSet", label_selector({"track": "blue"}))


def pods(**numbers: int) -> list[Pod]:
    """Pods of the web service, by the number on each node."""
    return [web(node, str(index)) for node, number in numbers.items() for index in range(number)]


def web(node: str, suffix: str = "0", **fields: Any) -> Pod:
    labels = fields.pop("labels", {"app": "web", "track": "blue"})
    return make_pod(f"{node}-{suffix}", labels=labels, node=node, **fields)


def scored(
    nodes: list[Node], placed: list[Pod], workloads: list[Workload], pod: Pod | None = None
) -> dict[str, tuple[int, int]]:
    """Matching pods and score by node."""
    cluster = MirroredCluster(nodes, placed)
    for index, (kind, selector) in enumerate(workloads):
        cluster.update_workload(kind, "default", f"w{index}", selector)
    return scores_of(cluster, SelectorSpread(SelectorSpreadArgs()), pod or web(""))


def scores_of(
    cluster: MirroredCluster, plugin: SelectorSpread, pod: Pod
) -> dict[str, tuple[int, int]]:
    state, info = CycleState(), cluster.info(pod)
    view = existing_nodes(cluster.snapshot())
    raw = plugin.score(state, info, view)
    normalized = plugin.normalize_score(state, info, view, raw)
    return dict(zip(view.names, zip(raw.tolist(), normalized.tolist(), strict=True), strict=True))


def bare(*names: str) -> list[Node]:
    return [make_node(name) for name in names]


# Placed pods, workloads, and (matching pods, score) of three nodes without zones.
NODE_CASES: dict[str, tuple[list[Pod], list[Workload], list[tuple[int, int]]]] = {
    "without a selector all nodes get the maximum": (pods(a=3), [], [(0, 100)] * 3),
    "without a pod all nodes get the maximum": ([], [SERVICE], [(0, 100)] * 3),
    # 10*(3-3)/3 = 0, 10*(3-1)/3 = 6.67 cut off to 6, 10*(3-0)/3 = 10; times 10
    "nodes with fewer pods score higher": (pods(a=3, b=1), [SERVICE], [(3, 0), (1, 60), (0, 100)]),
    "with equal counts all nodes get 0": (pods(a=2, b=2, c=2), [SERVICE], [(2, 0)] * 3),
    # 10*(5-2)/5 = 6
    "a node with two of at most five pods gets six points": (
        pods(a=5, b=2),
        [SERVICE],
        [(5, 0), (2, 60), (0, 100)],
    ),
    # 10*(7-6)/7 = 1.43, 10*(7-1)/7 = 8.57
    "scores are truncated, not rounded": (
        pods(a=7, b=6, c=1),
        [SERVICE],
        [(7, 0), (6, 10), (1, 80)],
    ),
    "a pod that two selectors match counts once": (
        pods(a=2, b=1),
        [SERVICE, BLUE],
        [(2, 0), (1, 50), (0, 100)],
    ),
    "a pod that one of two selectors matches counts": (
        [web("a", labels={"app": "web"}), web("b", labels={"track": "blue"}), *pods(c=2)],
        [SERVICE, CANARY],
        [(1, 50), (1, 50), (2, 0)],
    ),
    "a selector that does not match the pod itself does not count": (
        [web("a", labels={"app": "db"}), *pods(b=1)],
        [SERVICE, ("Service", label_selector({"app": "db"}))],
        [(0, 100), (1, 0), (0, 100)],
    ),
    "an empty selector selects nothing": (
        pods(a=1),
        [("Service", LabelSelector()), ("ReplicaSet", LabelSelector()), ("StatefulSet", None)],
        [(0, 100)] * 3,
    ),
    "an invalid selector selects nothing": (
        pods(a=1),
        [("ReplicaSet", label_selector(None, ("app", "Near", ["web"])))],
        [(0, 100)] * 3,
    ),
    "set-based expressions are supported": (
        pods(a=1),
        [("StatefulSet", label_selector(None, ("app", "In", ["web", "api"])))],
        [(1, 0), (0, 100), (0, 100)],
    ),
    "a ReplicationController counts even if it does not own the pod": (
        pods(a=1),
        [("ReplicationController", label_selector({"app": "web"}))],
        [(1, 0), (0, 100), (0, 100)],
    ),
    "pods of another namespace do not count": (
        [web("a", namespace="other"), *pods(b=1)],
        [SERVICE],
        [(0, 100), (1, 0), (0, 100)],
    ),
    "pods that are being deleted do not count": (
        [web("a", terminating=True), *pods(b=1)],
        [SERVICE],
        [(0, 100), (1, 0), (0, 100)],
    ),
}


@pytest.mark.parametrize(
    ("placed", "workloads", "want"), NODE_CASES.values(), ids=NODE_CASES.keys()
)
def test_scores_of_nodes_without_zones(
    placed: list[Pod], workloads: list[Workload], want: list[tuple[int, int]]
) -> None:
    found = scored(bare("a", "b", "c"), placed, workloads)
    assert found == dict(zip("abc", want, strict=True))


def test_a_pod_without_labels_is_selected_by_no_set() -> None:
    workloads: list[Workload] = [("ReplicaSet", label_selector(None, ("app", "DoesNotExist", [])))]
    placed = [web("a", labels={"tier": "x"})]
    assert scored(bare("a"), placed, workloads, web("", labels={})) == {"a": (0, 100)}
    assert scored(bare("a"), placed, workloads, web("", labels={"tier": "x"})) == {"a": (1, 0)}


def in_zone(name: str, **labels: str) -> Node:
    keys = {"zone": ZONE, "region": REGION, "old_zone": OLD_ZONE, "old_region": OLD_REGION}
    return make_node(name, labels={keys[key]: value for key, value in labels.items()})


# Nodes, placed pods, and (matching pods, score) of each node.
ZONE_CASES: dict[str, tuple[list[Node], list[Pod], list[tuple[int, int]]]] = {
    # Zones x: 2+1, y: 1+0. Node and zone points, one third and two thirds of them:
    # a: 10*0/2,  10*0/3  -> 0            b: 10*1/2, 10*0/3 -> 1.67
    # c: 10*1/2,  10*2/3  -> 1.67 + 4.44  d: 10*2/2, 10*2/3 -> 3.33 + 4.44
    "zones count twice as much as nodes": (
        [in_zone(n, zone=z) for n, z in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"))],
        pods(a=2, b=1, c=1),
        [(2, 0), (1, 10), (1, 60), (0, 70)],
    ),
    # a: 10*0/1, 10*0/1; b: 10, 10*0/1 -> 3.33; c: no zone, so its own part is all: 10
    "a node without a zone is scored by its own pods only": (
        [in_zone("a", zone="x"), in_zone("b", zone="x"), in_zone("c")],
        pods(a=1),
        [(1, 0), (0, 30), (0, 100)],
    ),
    "an empty zone is no zone": (
        [in_zone("a", zone="x"), in_zone("b", zone="x"), in_zone("c", zone="")],
        pods(a=1),
        [(1, 0), (0, 30), (0, 100)],
    ),
    # No pod in any zone: zone points 10. a and b: 3.33 + 6.67; c: 10*0/1
    "zones without pods score equally": (
        [in_zone("a", zone="x"), in_zone("b", zone="y"), in_zone("c")],
        pods(c=1),
        [(0, 100), (0, 100), (1, 0)],
    ),
    # a and b are one zone with 1 pod, c another with none: a 0, b 3.33, c 10
    "the labels of 1.12 name the same zones": (
        [in_zone("a", zone="x"), in_zone("b", old_zone="x"), in_zone("c", old_zone="y")],
        pods(a=1),
        [(1, 0), (0, 30), (0, 100)],
    ),
    "the current label takes precedence over that of 1.12": (
        [in_zone("a", zone="x", old_zone="y"), in_zone("b", zone="x"), in_zone("c", zone="y")],
        pods(a=1),
        [(1, 0), (0, 30), (0, 100)],
    ),
    "zones with the same name in two regions differ": (
        [
            in_zone("a", region="r", zone="x"),
            in_zone("b", old_region="r", zone="x"),
            in_zone("c", region="s", zone="x"),
        ],
        pods(a=1),
        [(1, 0), (0, 30), (0, 100)],
    ),
    "a region alone is a zone": (
        [in_zone("a", region="r"), in_zone("b", region="r"), in_zone("c", region="s")],
        pods(a=1),
        [(1, 0), (0, 30), (0, 100)],
    ),
}


@pytest.mark.parametrize(("nodes", "placed", "want"), ZONE_CASES.values(), ids=ZONE_CASES.keys())
def test_scores_of_nodes_with_zones(
    nodes: list[Node], placed: list[Pod], want: list[tuple[int, int]]
) -> None:
    names = [node.metadata.labels[HOSTNAME] for node in nodes]
    assert scored(nodes, placed, [SERVICE]) == dict(zip(names, want, strict=True))


def test_only_feasible_nodes_count_for_the_highest_count() -> None:
    cluster = MirroredCluster(bare("a", "b", "c"), pods(a=4, b=2, c=1))
    cluster.update_workload("Service", "default", "web", SERVICE[1])
    plugin, state, info = SelectorSpread(SelectorSpreadArgs()), CycleState(), cluster.info(web(""))
    everywhere = existing_nodes(cluster.snapshot())
    without_a = cluster.snapshot().view(everywhere.rows[[name != "a" for name in everywhere.names]])
    raw = plugin.score(state, info, without_a)
    # The highest count is b's: 10*(2-2)/2 and 10*(2-1)/2
    assert plugin.normalize_score(state, info, without_a, raw).tolist() == [0, 50]


def test_changed_workloads_change_the_selectors() -> None:
    cluster = MirroredCluster([in_zone("a", zone="x"), in_zone("b", zone="x")], pods(a=1))
    plugin, pod = SelectorSpread(SelectorSpreadArgs()), web("")
    held = cluster.info(pod)  # keeps the class alive between the calls
    assert scores_of(cluster, plugin, pod) == {"a": (0, 100), "b": (0, 100)}
    cluster.update_workload("Service", "default", "web", SERVICE[1])
    assert scores_of(cluster, plugin, pod) == {"a": (1, 0), "b": (0, 30)}
    cluster.update_node(in_zone("b", zone="y"))
    assert scores_of(cluster, plugin, pod) == {"a": (1, 0), "b": (0, 100)}
    cluster.remove_workload("Service", "default", "web")
    assert scores_of(cluster, plugin, pod) == {"a": (0, 100), "b": (0, 100)}
    assert cluster.info(pod).pod_class is held.pod_class


WEB_PODS = selector_from_labels({"app": "web", "tier": "front"})
BLUE_PODS = selector_from_labels({"track": "blue", "tier": "front"})


def test_unions_in_any_order_are_equal() -> None:
    assert AnySelector.of([WEB_PODS, BLUE_PODS]) == AnySelector.of([BLUE_PODS, WEB_PODS])
    assert AnySelector.of([WEB_PODS, WEB_PODS, NOTHING]) is WEB_PODS
    assert AnySelector.of([]) is NOTHING


def test_a_narrower_selector_does_not_change_a_union() -> None:
    narrower = WEB_PODS.with_requirements([Requirement("track", Operator.IN, ("blue",))])
    assert AnySelector.of([narrower, WEB_PODS]) == WEB_PODS


def test_a_union_requires_what_its_selectors_share() -> None:
    union = AnySelector.of([WEB_PODS, BLUE_PODS])
    assert union.requirements == (Requirement("tier", Operator.IN, ("front",)),)
    assert not union.matches({"tier": "front"})
    assert union.matches({"tier": "front", "track": "blue"})
    assert not union.matches_everything
    assert str(union) == "app in (web),tier in (front) or tier in (front),track in (blue)"


def test_restricting_a_union_equals_the_union_of_restricted_selectors() -> None:
    union = AnySelector.of([WEB_PODS, BLUE_PODS])
    restricted = union.with_requirements([Requirement("track", Operator.EXISTS)])
    assert not restricted.matches({"app": "web", "tier": "front"})
    assert restricted.matches({"app": "web", "tier": "front", "track": "green"})


def test_with_services_only_controllers_do_not_count() -> None:
    """ServiceSpreadingPriority of 1.12."""
    cluster = MirroredCluster(bare("a", "b"), pods(a=2))
    cluster.update_workload(BLUE[0], "default", "rs", BLUE[1])
    services_only = SelectorSpread(SelectorSpreadArgs(services_only=True))
    assert scores_of(cluster, services_only, web("")) == {"a": (0, 100), "b": (0, 100)}
    cluster.update_workload(SERVICE[0], "default", "svc", SERVICE[1])
    assert scores_of(cluster, services_only, web("")) == {"a": (2, 0), "b": (0, 100)}
