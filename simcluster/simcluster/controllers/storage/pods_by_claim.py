"""An index of pods by the claims they use."""

from collections.abc import Callable
from typing import Any

from simcluster.controllers.ownership import is_finished
from simcluster.store.store import Change, Stored

Json = dict[str, Any]
ClaimKey = tuple[str, str]
OnClaim = Callable[[str, str], None]


class PodsByClaim:
    """Unfinished pods by namespace and name of each claim; kept up to date by :meth:`see`."""

    def __init__(self) -> None:
        self._by_claim: dict[ClaimKey, dict[str, Stored]] = {}
        self._listeners: list[OnClaim] = []

    def on_change(self, listener: OnClaim) -> None:
        """Call ``listener`` with a claim's namespace and name when a pod that uses it changes."""
        self._listeners.append(listener)

    def add(self, pod: Stored) -> None:
        """Take in a pod that exists at the start."""
        for name in claims_of(pod.obj):
            if not is_finished(pod):
                self._by_claim.setdefault((pod.namespace, name), {})[pod.name] = pod

    def see(self, change: Change) -> None:
        """Take a change into the index."""
        pod = change.current
        for name in claims_of(pod.obj):
            key = (pod.namespace, name)
            if change.type == "DELETED" or is_finished(pod):
                pods = self._by_claim.get(key, {})
                pods.pop(pod.name, None)
                if not pods:
                    self._by_claim.pop(key, None)
            else:
                self._by_claim.setdefault(key, {})[pod.name] = pod
            for listener in self._listeners:
                listener(*key)

    def using(self, namespace: str, name: str) -> list[Stored]:
        """The unfinished pods that use a claim."""
        return list(self._by_claim.get((namespace, name), {}).values())


def claims_of(pod: Json) -> list[str]:
    """The names of a pod's claims, those of its ephemeral volumes included."""
    names = []
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            names.append(volume["persistentVolumeClaim"]["claimName"])
        elif "ephemeral" in volume:
            names.append(f"{pod['metadata']['name']}-{volume['name']}")
    return names
