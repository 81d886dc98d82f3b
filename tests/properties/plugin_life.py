"""Compares a plugin with its scalar twin while a random cluster changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from stowage.api.objects.pod import Pod
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot
from tests.support.generators.random_cluster import RandomCluster
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes, without_pods_of_node
from tests.support.scalar.cluster import PlainCluster

Asking = tuple[Pod, PodInfo]
CheckFilter = Callable[[PlainCluster, Snapshot, Asking], None]
CheckScore = Callable[[MirroredCluster, Asking, NodeView], None]

_ALL_NODES, _EVERY_OTHER_NODE = 0b1111111, 0b0101010


def check_a_life(world: RandomCluster, check_filter: CheckFilter, check_score: CheckScore) -> None:
    """Let things happen, and compare for the same pending pods before each.

    Filter is also compared without the pods of one node, as preemption asks, and Score on every
    other node too.
    """
    cluster = world.cluster
    pending = [world.pending_pod(f"pending-{index}") for index in range(3)]
    for _ in range(6):
        for pod in pending:
            check_filter(cluster.plain, cluster.snapshot(), (pod, cluster.info(pod)))
            view = _nodes_of(cluster, world.random.choice((_ALL_NODES, _EVERY_OTHER_NODE)))
            if len(view):
                check_score(cluster, (pod, cluster.info(pod)), view)
        _check_what_if(cluster, check_filter, pending[0])
        world.happen()


def _nodes_of(cluster: MirroredCluster, subset: int) -> NodeView:
    """The nodes whose number is a bit of the subset."""
    everywhere = existing_nodes(cluster.snapshot())
    chosen = [bool(subset >> int(name[1:]) & 1) for name in everywhere.names]
    return cluster.snapshot().view(everywhere.rows[chosen])


def _check_what_if(cluster: MirroredCluster, check_filter: CheckFilter, pod: Pod) -> None:
    leaving = [uid for uid, placed in cluster.plain.pods.items() if placed.spec.node_name == "n0"]
    staying = {uid: placed for uid, placed in cluster.plain.pods.items() if uid not in leaving}
    plain = dataclasses.replace(cluster.plain, pods=staying)
    check_filter(plain, without_pods_of_node(cluster.snapshot(), "n0"), (pod, cluster.info(pod)))
