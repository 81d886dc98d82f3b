"""The pods of a cluster by node, and which of them changed.

A question about a large cluster touches few pods. What it needs is found here without a visit to
all others.
"""

from __future__ import annotations

from collections.abc import Iterable

from stowage.api.objects.pod import Pod

_TERMINAL = frozenset({"Succeeded", "Failed"})
_PENDING = ""


def is_finished(pod: Pod) -> bool:
    """Whether the pod has ended and takes no room any more."""
    return pod.status.phase in _TERMINAL


class PodsByNode:
    """The pods of a cluster by the node in their spec; without finished pods.

    Attributes:
        changed: The pods (``namespace/name``) that were added, changed or removed since the index
            was made, or since `forget_changes` -> the node before; empty if the pod was pending,
            None if there was no pod.
        num_pods: The number of pods.
    """

    def __init__(self, pods: Iterable[Pod]) -> None:
        self.changed: dict[str, str | None] = {}
        self.num_pods = 0
        self._by_node: dict[str, dict[str, Pod]] = {}
        for pod in pods:
            self._put(pod.metadata.namespaced_name, pod)

    @property
    def num_pending(self) -> int:
        """The number of pods without a node."""
        return len(self._by_node.get(_PENDING, ()))

    def on_node(self, name: str) -> list[Pod]:
        """The pods on a node, those that came last at the end."""
        return list(self._by_node.get(name, {}).values())

    def pending(self) -> list[str]:
        """The pods without a node."""
        return list(self._by_node.get(_PENDING, ()))

    def forget_changes(self) -> None:
        """From now on `changed` is about later changes."""
        self.changed.clear()

    def replace(self, key: str, old: Pod | None, new: Pod | None) -> None:
        """Count the pod `new` in place of `old`; None stands for no pod."""
        known = None if old is None or is_finished(old) else old
        self.changed.setdefault(key, None if known is None else known.spec.node_name)
        if known is None:
            if new is not None:
                self._put(key, new)
            return
        pods = self._by_node[known.spec.node_name]
        if new is None or is_finished(new) or new.spec.node_name != known.spec.node_name:
            del pods[key]
            self.num_pods -= 1
            if new is not None:
                self._put(key, new)
            return
        pods[key] = new  # it keeps its place among the others

    def _put(self, key: str, pod: Pod) -> None:
        if not is_finished(pod):
            self.num_pods += 1
            self._by_node.setdefault(pod.spec.node_name, {})[key] = pod
