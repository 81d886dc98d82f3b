"""The whole cluster as it would be with other pods on one node."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot
from stowage.state.what_if.pod_index import WhatIfPodIndex


class WhatIfSnapshot(Snapshot):
    """A snapshot with some pods removed from one node and others added to it.

    The usage columns and the volume use are copies; everything else is shared with the live state,
    so there is nothing to undo. Making one costs time in proportion to the nodes.

    Args:
        base: The cluster as it is.
        removed: Pods on the node.
        added: Pods that are on no node, or among the removed ones.
        row: The row of the node.
    """

    __slots__ = ("_node_name", "_pods_here", "_removed")

    is_what_if = True

    def __init__(
        self, base: Snapshot, removed: Iterable[PodInfo], added: Iterable[PodInfo], row: int
    ) -> None:
        for name in Snapshot.__slots__:
            setattr(self, name, getattr(base, name))
        self._node_name = base.node_names[row]
        gone = list(removed)
        come = [pod.on_node(self._node_name) for pod in added]
        self._columns = self._columns.with_own_usage()
        for pod in come:
            self._columns.add_pod(row, pod.pod_class)
        for pod in gone:
            self._columns.remove_pod(row, pod.pod_class)
        self.pods = WhatIfPodIndex(self.pods, self.namespaces, gone, come, row)
        self.volume_use = self.volume_use.with_changes(gone, come, row)
        self._removed = {pod.uid for pod in gone}
        staying = (pod for pod in base.pods_on(self._node_name) if pod.uid not in self._removed)
        self._pods_here = {pod.uid: pod for pod in (*staying, *come)}

    def get_pod(self, uid: str) -> PodInfo | None:
        """The pod with this UID, if it is on a node."""
        pod = self._pods_here.get(uid)
        return super().get_pod(uid) if pod is None and uid not in self._removed else pod

    def pods_on(self, node_name: str) -> Collection[PodInfo]:
        """The pods on a node, which need not exist."""
        if node_name == self._node_name:
            return self._pods_here.values()
        return super().pods_on(node_name)
