"""Nominated pods: pods that count on a node before they are bound to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from stowage.state.change_log import Log
from stowage.state.pods.pod_info import PodInfo


class Nominator:
    """Nominated pods by node; ``backend/queue/nominator.go`` of kube-scheduler v1.36.

    A nomination is recorded before the API server has it. So it may differ from the last
    ``status.nominatedNodeName``.
    """

    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._changes: Log[str] = Log()

    def __len__(self) -> int:
        return len(self._node_of)

    def __contains__(self, uid: str) -> bool:
        return uid in self._node_of

    @property
    def generation(self) -> int:
        """Grows with every change; tells whether data derived from nominations is current."""
        return self._changes.generation

    def changed_since(self, generation: int) -> Collection[str] | None:
        """The UIDs of pods whose nomination changed after `generation`; None if it is too old.

        A UID may occur more than once.
        """
        return self._changes.tail(generation)

    def nominate(self, info: PodInfo, node_name: str | None = None) -> None:
        """Nominate a pod; replaces an earlier nomination of the pod.

        None takes the node from the pod's status; an empty name clears the nomination.
        """
        self.remove(info.uid)
        node_name = info.nominated_node_name if node_name is None else node_name
        if node_name:
            self._node_of[info.uid] = node_name
            self._by_node.setdefault(node_name, {})[info.uid] = info
            self._changes.record(info.uid)

    def update(self, old: PodInfo, new: PodInfo) -> None:
        """Handle an update of a waiting pod.

        The status decides. If neither version has a nomination, the recorded nomination has not
        reached the API server yet and stays.
        """
        kept = None
        if not old.nominated_node_name and not new.nominated_node_name:
            kept = self._node_of.get(old.uid)
        self.nominate(new, kept)

    def refresh(self, info: PodInfo) -> None:
        """Replace the stored version of a nominated pod; the nomination stays."""
        node_name = self._node_of.get(info.uid)
        if node_name is not None:
            self.nominate(info, node_name)

    def remove(self, uid: str) -> None:
        """Remove a pod's nomination, if it has one."""
        node_name = self._node_of.pop(uid, None)
        if node_name is not None:
            pods = self._by_node[node_name]
            del pods[uid]
            if not pods:
                del self._by_node[node_name]
            self._changes.record(uid)

    def uids(self) -> Collection[str]:
        """The UIDs of all nominated pods."""
        return self._node_of.keys()

    def pod(self, uid: str) -> PodInfo | None:
        """The nominated pod with this UID, if any."""
        node_name = self._node_of.get(uid)
        return None if node_name is None else self._by_node[node_name][uid]

    def node_of(self, uid: str) -> str | None:
        """The node that a pod is nominated to, if any."""
        return self._node_of.get(uid)

    def pods_on(self, node_name: str) -> tuple[PodInfo, ...]:
        """The pods nominated to a node, in the order of their nominations."""
        return tuple(self._by_node.get(node_name, {}).values())

    def nodes(self) -> Collection[str]:
        """The nodes that have nominated pods."""
        return self._by_node.keys()

    def inconsistencies(self) -> Iterator[str]:
        """Violated invariants, as text."""
        listed = {uid: node for node, pods in self._by_node.items() for uid in pods}
        if listed != self._node_of or not all(self._by_node.values()):
            yield "nominations by pod and by node differ"
