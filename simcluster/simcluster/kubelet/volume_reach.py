"""Pods that wait because their node cannot reach one of their volumes."""

from simcluster.controllers.indexes import claims_of
from simcluster.controllers.recorder import EventRecorder
from simcluster.kinds.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
)
from simcluster.kubelet.nodes import is_selected
from simcluster.store.registry import Registry
from simcluster.store.store import Stored

PodName = tuple[str, str]


class VolumeReach:
    """Admitted pods whose bound volumes have a node affinity that leaves their node out.

    Args:
        registry: nodes, claims and volumes, and where Events are written.
    """

    def __init__(self, registry: Registry) -> None:
        self._store = registry.store
        self._recorder = EventRecorder(registry)
        self._waiting: dict[str, dict[PodName, None]] = {}
        """The pods by the node that they are bound to."""

    def must_wait(self, pod: Stored) -> bool:
        """Whether a pod must wait; :meth:`take` returns it when its node changes."""
        node = self._store.get(NODES.stored_in, "", pod.spec["nodeName"])
        volume = None if node is None else self._out_of_reach(pod, node)
        if node is None or volume is None:
            return False
        self._waiting.setdefault(node.name, {})[pod.namespace, pod.name] = None
        why = (
            f'MountVolume.NodeAffinity check failed for volume "{volume.name}" : '
            "no matching NodeSelectorTerms"
        )
        self._recorder.warning("kubelet", PODS, pod, "FailedMount", why)
        return True

    def take(self, node_name: str) -> list[PodName]:
        """Remove and return the waiting pods of a node that has changed."""
        return list(self._waiting.pop(node_name, ()))

    def forget(self, pod: Stored) -> None:
        """Remove a deleted pod."""
        self._waiting.get(pod.spec.get("nodeName", ""), {}).pop((pod.namespace, pod.name), None)

    def _out_of_reach(self, pod: Stored, node: Stored) -> Stored | None:
        for name in claims_of(pod.obj):
            claim = self._store.get(PERSISTENT_VOLUME_CLAIMS.stored_in, pod.namespace, name)
            volume_name = claim.spec.get("volumeName") if claim is not None else None
            volume = self._store.get(PERSISTENT_VOLUMES.stored_in, "", volume_name or "")
            affinity = {} if volume is None else volume.spec.get("nodeAffinity") or {}
            if not is_selected(node, affinity.get("required")):
                return volume
        return None
