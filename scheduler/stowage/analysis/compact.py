"""How few nodes could hold what runs: the nodes that could be drained and removed."""

from __future__ import annotations

import msgspec
import numpy as np

from stowage.analysis.cluster_changes import (
    DisruptionBudgets,
    cordon,
    find_node,
    kept_by_drain,
)
from stowage.analysis.loaded_cluster import LoadedCluster, stand_in_notes
from stowage.analysis.relocation import Relocations
from stowage.analysis.virtual_cluster import VirtualCluster
from stowage.analysis.what_if import ClusterSummary, Placement, summary_of
from stowage.api.objects.meta import controller_of
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.state.snapshot import Snapshot


class NeededNode(msgspec.Struct, frozen=True, rename="camel"):
    """A node that cannot be removed, and why."""

    node: str
    why: str


class CompactAnswer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The nodes that could be removed one after the other, every pod keeping a place.

    Attributes:
        removable: The nodes, in the order in which they are drained.
        moved: The pods that get another node.
        needed: The nodes that were tried and are needed.
        before: The cluster as it is, with the pending pods that fit on their nodes.
        after: The cluster without the removable nodes.
        notes: What the answer cannot know.
    """

    removable: tuple[str, ...]
    moved: tuple[Placement, ...]
    needed: tuple[NeededNode, ...]
    before: ClusterSummary
    after: ClusterSummary
    notes: tuple[str, ...] = ()


def compact(loaded: LoadedCluster) -> CompactAnswer:
    """Drain node after node, the least used first, as long as every pod finds another place.

    A node is needed if one of its pods would stay pending, has no controller, or is protected by
    a disruption budget. Moved pods preempt none. They go to nodes that may be removed later only if
    no other node takes them, so most move once. Among the other nodes the scheduler decides, so
    another order or another profile may free more nodes. A pending pod that fits is placed first;
    the others stay pending. The cluster is changed: load it for each question.
    """
    notes = list(stand_in_notes(loaded, loaded.objects.pods()))
    if loaded.engine.state.extenders:
        notes.append("extenders are not asked")
    cluster = VirtualCluster(loaded)
    cluster.run()
    cluster.set_aside_pending()
    cluster.pods.forget_changes()
    before = summary_of(cluster)
    snapshot = loaded.engine.state.cache.snapshot()
    order = _least_used_first(snapshot)
    compaction = _Compaction(cluster, _removable_at_best(snapshot, order))
    removable: list[str] = []
    needed: list[NeededNode] = []
    for row, name in [(row, snapshot.node_names[row]) for row in order.tolist()]:
        why = compaction.remove(row, name)
        if why:
            needed.append(NeededNode(name, why))
        else:
            removable.append(name)
    moved = [
        Placement(key, node, was=was)
        for key, was, node in cluster.moves()
        if was is not None and was != node
    ]
    return CompactAnswer(
        tuple(removable),
        tuple(sorted(moved, key=lambda each: each.pod)),
        tuple(needed),
        before,
        summary_of(cluster),
        tuple(notes),
    )


def _least_used_first(snapshot: Snapshot) -> Int64Array:
    """The rows of the nodes by the largest requested share of any resource."""
    rows = np.flatnonzero(snapshot.exists)
    allocatable = snapshot.allocatable[rows]
    counted = np.where(allocatable > 0, allocatable, 1)
    share = np.where(allocatable > 0, snapshot.requested[rows] / counted, 0.0).max(axis=1)
    return rows[np.argsort(share, kind="stable")]


def _removable_at_best(snapshot: Snapshot, order: Int64Array) -> BoolArray:
    """``bool[rows]``: the first nodes of the order without which the others have enough in all."""
    allocatable = snapshot.allocatable[order]
    left = allocatable.sum(axis=0) - allocatable.cumsum(axis=0)
    enough = (left >= snapshot.requested[order].sum(axis=0)).all(axis=1)
    first = np.zeros(snapshot.num_rows, dtype=np.bool_)
    first[order[enough]] = True
    return first


class _Compaction:
    """Removes nodes of a cluster, one after the other.

    Args:
        cluster: The cluster.
        avoided: ``bool[rows]``: nodes that get a pod only if no other node takes it; a node that
            was tried is not avoided any more.
    """

    def __init__(self, cluster: VirtualCluster, avoided: BoolArray) -> None:
        self._cluster = cluster
        self._avoided = avoided
        self._relocations = Relocations(cluster)
        self._budgets = DisruptionBudgets(cluster)

    def remove(self, row: int, name: str) -> str:
        """Remove the node if all its pods find a place; why not, and nothing is changed."""
        cluster = self._cluster
        self._avoided[row] = False
        moving = [pod for pod in cluster.pods.on_node(name) if not kept_by_drain(pod)]
        why = self._reason_to_keep(moving)
        if why:
            return why
        node = find_node(cluster, name)
        cordon(cluster, name)
        why = self._move(self._relocations.hopeless_first(name, moving))
        if why:
            _put_back(cluster, node, moving)
            return why
        for pod in cluster.pods.on_node(name):
            cluster.delete_pod(pod)
        cluster.remove_node(name)
        return ""

    def _reason_to_keep(self, moving: list[Pod]) -> str:
        """Why one of the pods may not be evicted, wherever there is room."""
        for pod in moving:
            key = pod.metadata.namespaced_name
            if controller_of(pod.metadata) is None:
                return f"{key} has no controller that would make it again"
            refusal = self._budgets.refusal(pod)
            if refusal:
                return f"{key}: {refusal}"
        return ""

    def _move(self, moving: list[Pod]) -> str:
        """Move the pods of a cordoned node one by one; why one of them cannot move."""
        for pod in moving:
            why = self._relocations.relocate(pod, self._avoided)
            if why:
                return why
        return ""


def _put_back(cluster: VirtualCluster, node: Node, moving: list[Pod]) -> None:
    """Undo a move: the pods are on their node again."""
    for pod in moving:
        current = cluster.objects.pod(pod.metadata.namespaced_name)
        if current is not None and current.metadata.uid != pod.metadata.uid:
            cluster.delete_pod(current)
    for pod in moving:
        if cluster.objects.pod(pod.metadata.namespaced_name) is None:
            cluster.place_pod(pod)
    cluster.put_node(node)
