"""The state of a DaemonSet on each node, and its sum, which changes node by node."""

from typing import NamedTuple

from simcluster.store.store import Stored


class NodeTally(NamedTuple):
    """One node's part of a DaemonSet's status; each count is 0 or 1."""

    desired: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0


class DaemonBook:
    """The tallies of one DaemonSet.

    Attributes:
        total: the sum over all nodes.
        pods: the set's pods by the node they are on or made for.
        dirty: nodes to reconcile.
        waiting: nodes to reconcile again, once their pod has been ready for long enough or its
            backoff after a failure is over.
        outdated: nodes whose pod is of an older template.
        failures: how often pods have failed on a node in a row, and when the last one was deleted.
    """

    def __init__(self) -> None:
        self.total = NodeTally()
        self.pods: dict[str, dict[str, Stored]] = {}
        self.dirty: dict[str, None] = {}
        self.waiting: dict[str, None] = {}
        self.outdated: dict[str, None] = {}
        self.failures: dict[str, tuple[int, float]] = {}
        self._tallies: dict[str, NodeTally] = {}

    def put_pod(self, node_name: str, pod: Stored) -> None:
        """Add a pod, or replace its earlier state."""
        self.pods.setdefault(node_name, {})[pod.name] = pod
        self.dirty[node_name] = None

    def discard_pod(self, node_name: str, pod: Stored) -> None:
        """Remove a pod that is gone."""
        pods = self.pods.get(node_name, {})
        pods.pop(pod.name, None)
        if not pods:
            self.pods.pop(node_name, None)
        self.dirty[node_name] = None

    def set_tally(self, node_name: str, tally: NodeTally, *, is_outdated: bool) -> None:
        """Replace the tally of a node."""
        before = self._tallies.get(node_name, NodeTally())
        self.total = NodeTally(
            *(whole - old + new for whole, old, new in zip(self.total, before, tally, strict=True))
        )
        if any(tally):
            self._tallies[node_name] = tally
        else:
            self._tallies.pop(node_name, None)
        if is_outdated:
            self.outdated[node_name] = None
        else:
            self.outdated.pop(node_name, None)
