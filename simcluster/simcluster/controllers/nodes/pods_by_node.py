"""An index of pods by the node they are bound to."""

from collections.abc import Callable

from simcluster.store.store import Change, Stored

OnPod = Callable[[Change], None]


class PodsByNode:
    """Pods by ``spec.nodeName``; kept up to date by :meth:`see`."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[tuple[str, str], Stored]] = {}
        self._listeners: list[OnPod] = []

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
            self.add(current)
        for listener in self._listeners:
            listener(change)

    def add(self, stored: Stored) -> None:
        """Take in a pod, if it is bound."""
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
