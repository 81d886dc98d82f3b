"""The pods of one disruption budget, counted as they change."""

from typing import NamedTuple

from simcluster.controllers.ownership import controller_reference, is_ready
from simcluster.store.store import Stored


class Owner(NamedTuple):
    """A controller of pods; a pod without a controller is its own."""

    namespace: str
    uid: str
    api_version: str
    kind: str
    name: str


class BudgetPods:
    """Active pods of one budget.

    Attributes:
        healthy: names of those that are ready.
        owners: how many of them each controller has.
    """

    def __init__(self) -> None:
        self._pods: dict[str, Owner] = {}
        self.healthy: dict[str, None] = {}
        self.owners: dict[Owner, int] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, name: object) -> bool:
        return name in self._pods

    def put(self, pod: Stored) -> None:
        """Add an active pod, or replace its earlier state."""
        self.discard(pod.name)
        owner = owner_of(pod)
        self._pods[pod.name] = owner
        self.owners[owner] = self.owners.get(owner, 0) + 1
        if is_ready(pod):
            self.healthy[pod.name] = None

    def discard(self, name: str) -> None:
        """Remove a pod, if it is there."""
        owner = self._pods.pop(name, None)
        if owner is None:
            return
        self.healthy.pop(name, None)
        self.owners[owner] -= 1
        if not self.owners[owner]:
            del self.owners[owner]


def owner_of(pod: Stored) -> Owner:
    """A pod's controller."""
    reference = controller_reference(pod.obj)
    if reference is None:
        return Owner(pod.namespace, pod.obj["metadata"]["uid"], "", "", "")
    return Owner(
        pod.namespace,
        reference["uid"],
        reference["apiVersion"],
        reference["kind"],
        reference["name"],
    )
