"""Namespaces that are being deleted: their content goes first."""

from scheduler.cluster.controllers.reconciler import Key, Reconciler, key_of
from scheduler.cluster.deletion import DeleteOptions
from scheduler.cluster.resources import NAMESPACES, Resource
from scheduler.cluster.store import Change


class NamespaceController(Reconciler):
    """Empties terminating namespaces and removes them once they are empty."""

    def follow(self) -> None:
        """Follow namespaces, and what leaves them."""
        self._contents: list[Resource] = []
        for resource in self.registry.catalog.collections():
            self._include(resource)
        self.registry.catalog.follow_collections(self._include)
        self.subscribe(NAMESPACES, lambda change: self.enqueue(key_of(change)))
        self.enqueue_all(NAMESPACES)

    def _include(self, resource: Resource) -> None:
        if resource.namespaced:
            self._contents.append(resource)
            self.subscribe(resource, self._on_content)

    def _on_content(self, change: Change) -> None:
        if change.type != "DELETED":
            return
        namespace = self.store.get(NAMESPACES.stored_in, "", change.current.namespace)
        if namespace is not None and namespace.obj["metadata"].get("deletionTimestamp"):
            self.enqueue(Key("", namespace.name))

    def reconcile(self, key: Key) -> None:
        """Delete what is in a terminating namespace; remove it if nothing is."""
        namespace = self.store.get(NAMESPACES.stored_in, "", key.name)
        if namespace is None or not namespace.obj["metadata"].get("deletionTimestamp"):
            return
        is_empty = True
        for resource in self._contents:
            for stored in self.store.collection(resource.stored_in).items(key.name):
                if not stored.obj["metadata"].get("deletionTimestamp"):
                    options = DeleteOptions(propagation_policy="Background")
                    self.registry.delete(resource, key.name, stored.name, options)
                if self.store.get(resource.stored_in, key.name, stored.name) is not None:
                    is_empty = False
        if is_empty:
            self.store.remove(NAMESPACES.stored_in, namespace)
