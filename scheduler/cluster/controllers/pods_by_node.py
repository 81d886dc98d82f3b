"""An index of pods by the node they are bound to."""

from collections.abc import Callable

from scheduler.cluster.resources import PODS
from scheduler.cluster.store import Change, Store, Stored

OnPod = Callable[[Change], None]


class PodsByNode:
    """Pods by ``spec.nodeName``; kept up to date by :meth:`see`.

    Args:
        store: whose pods are indexed.
    """

    def __init__(self, store: Store) -> None:
        self._by_node: dict[str, dict[tuple[str, str], Stored]] = {}
        self._listeners: list[OnPod] = []
        for stored in store.collection(PODS.stored_in):
            self._add(stored)

    def on_change(self, listener: OnPod) -> None:
        """Call ``listener`` with each change of a bound pod."""
        self._listeners.append(listener)

    def see(self, change: Change) -> None:
        """Take a change into the index."""
        current = change.current
        node_name = current.obj["spec"].get("nodeName")
        if not node_name:
            return
        if change.type == "DELETED":
            pods = self._by_node.get(node_name, {})
            pods.pop((current.namespace, current.name), None)
            if not pods:
                self._by_node.pop(node_name, None)
        else:
            self._add(current)
        for listener in self._listeners:
            listener(change)

    def _add(self, stored: Stored) -> None:
        node_name = stored.obj["spec"].get("nodeName")
        if node_name:
            pods = self._by_node.setdefault(node_name, {})
            pods[stored.namespace, stored.name] = stored

    def on(self, node_name: str) -> list[Stored]:
        """The pods bound to a node."""
        return list(self._by_node.get(node_name, {}).values())

    def node_names(self) -> list[str]:
        """Every name that some pod is bound to."""
        return list(self._by_node)
