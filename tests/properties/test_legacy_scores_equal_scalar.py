"""The priorities of kube-scheduler 1.12 score as their scalar twins."""

from __future__ import annotations

import json
from random import Random

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.framework import CycleState, NoArgs
from stowage.plugins.equal_priority import EqualPriority
from stowage.plugins.node_prefer_avoid_pods import NodePreferAvoidPods
from stowage.plugins.selector_spread import SelectorSpread, SelectorSpreadArgs, spread_score
from stowage.state.snapshot import NodeView
from tests.support.builders import ZONE, make_node, owned_by
from tests.support.generators.random_cluster import RandomCluster
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes
from tests.support.scalar import equal_priority as equal_twin
from tests.support.scalar import node_prefer_avoid_pods as avoid_twin
from tests.support.scalar import selector_spread as spread_twin

KINDS = ("ReplicaSet", "ReplicationController", "StatefulSet")
UIDS = ("u1", "u2")
TOPOLOGY_KEYS = (
    ZONE,
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_scores_equal_the_twins(seed: int) -> None:
    """The plugins and one cache see all changes; the twins start afresh each time."""
    world = RandomCluster(seed, spread=True)
    random, cluster = world.random, world.cluster
    spread, avoid = SelectorSpread(SelectorSpreadArgs()), NodePreferAvoidPods(NoArgs())
    pending = [owned(world.pending_pod(f"pending-{index}"), random) for index in range(3)]
    held = [cluster.info(pod) for pod in pending]  # Else their classes would be removed in between.
    for name in list(cluster.plain.nodes):
        cluster.update_node(with_zone_labels_of_1_12(cluster.plain.nodes[name], random))
    for _ in range(6):
        view = some_nodes(cluster, random.choice((0b1111111, 0b0101010)))
        for pod, info in zip(pending, held, strict=True):
            assert cluster.info(pod).pod_class is info.pod_class
            check_spread(cluster, spread, pod, view)
            check_one_by_one(cluster, avoid, pod, view)
        world.happen()
        changed = random.choice(list(cluster.plain.nodes.values()) or [make_node("n0")])
        cluster.update_node(with_zone_labels_of_1_12(changed, random))


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.sampled_from((None, None, "a", "b", "c"))), max_size=12
    )
)
def test_spread_scores_equal_the_twin(
    pods_and_zones: list[tuple[int, str | None]],
) -> None:
    nodes = [make_node(str(index), zone=zone) for index, (_, zone) in enumerate(pods_and_zones)]
    counts = [number for number, _ in pods_and_zones]
    zones = [-1 if zone is None else "abc".index(zone) for _, zone in pods_and_zones]
    found = spread_score(np.array(counts, dtype=np.int64), np.array(zones, dtype=np.int64))
    assert found.tolist() == spread_twin.scores(nodes, counts)


def with_zone_labels_of_1_12(node: Node, random: Random) -> Node:
    """The node with zone and region under today's labels, those of 1.12, both or neither."""
    labels = dict(node.metadata.labels)
    for key in TOPOLOGY_KEYS:
        if random.random() < 0.4:
            labels[key] = random.choice(("a", "b", "c", ""))
    text = random.choice(("", "{", "null", "[]", avoidance(random), avoidance(random)))
    annotations = {avoid_twin.ANNOTATION: text} if random.random() < 0.8 else {}
    metadata = msgspec.structs.replace(node.metadata, labels=labels, annotations=annotations)
    return msgspec.structs.replace(node, metadata=metadata)


def avoidance(random: Random) -> str:
    """A NodePreferAvoidPods annotation with up to two controllers."""
    controllers = [
        {"kind": random.choice(KINDS), "uid": random.choice(UIDS)}
        for _ in range(random.randint(0, 2))
    ]
    entries = [{"podSignature": {"podController": each}} for each in controllers]
    return json.dumps({"preferAvoidPods": entries})


def owned(pod: Pod, random: Random) -> Pod:
    """The pod with at most one owner, which need not be its controller."""
    kind, uid = random.choice(KINDS), random.choice(UIDS)
    owner = owned_by(kind, "web", uid, controller=random.random() < 0.8)
    references = (owner,) if random.random() < 0.8 else ()
    metadata = msgspec.structs.replace(pod.metadata, owner_references=references)
    return msgspec.structs.replace(pod, metadata=metadata)


def some_nodes(cluster: MirroredCluster, subset: int) -> NodeView:
    """The nodes whose bit in `subset` is set; the others are not feasible."""
    everywhere = existing_nodes(cluster.snapshot())
    chosen = [bool(subset >> int(name[1:]) & 1) for name in everywhere.names]
    return cluster.snapshot().view(everywhere.rows[chosen])


def check_spread(
    cluster: MirroredCluster, plugin: SelectorSpread, pod: Pod, view: NodeView
) -> None:
    feasible = [cluster.plain.nodes[name] for name in view.names]
    counts = [spread_twin.count(cluster.plain, pod, node) for node in feasible]
    info, state = cluster.info(pod), CycleState()
    raw = plugin.score(state, info, view)
    assert raw.tolist() == counts
    found = plugin.normalize_score(state, info, view, raw)
    assert found.tolist() == spread_twin.scores(feasible, counts)


def check_one_by_one(
    cluster: MirroredCluster, plugin: NodePreferAvoidPods, pod: Pod, view: NodeView
) -> None:
    feasible = [cluster.plain.nodes[name] for name in view.names]
    info, state = cluster.info(pod), CycleState()
    avoided = plugin.score(state, info, view).tolist()
    assert avoided == [avoid_twin.score(pod, node) for node in feasible]
    equal = EqualPriority(NoArgs()).score(state, info, view).tolist()
    assert equal == [equal_twin.score(pod, node) for node in feasible]
