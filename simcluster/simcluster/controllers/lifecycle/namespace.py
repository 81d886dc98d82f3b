"""Deletion of namespaces: their content is deleted first."""

from collections import Counter

from simcluster.controllers.ownership import set_condition
from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.kinds.resources import NAMESPACES, Resource
from simcluster.store.registry import editable
from simcluster.store.store import Change, Stored
from simcluster.values import Json

FINALIZER = "kubernetes"
_NO_PROBLEM = {
    "NamespaceDeletionDiscoveryFailure": (
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": (
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
}
"""Reasons and messages of the conditions that are not True."""


class NamespaceController(Reconciler):
    """Deletes the content of terminating namespaces, and removes them once they are empty.

    A namespace is reconciled when its deletion begins and when its last object is gone; deletions
    in between are only counted.
    """

    def follow(self) -> None:
        """Follow namespaces, and deletions of objects in them."""
        self._contents: list[Resource] = []
        self._left: dict[str, int] = {}
        for resource in self.registry.catalog.collections():
            self._include(resource)
        self.registry.catalog.follow_collections(self._include)
        self.subscribe(NAMESPACES, self._on_namespace)
        self.enqueue_all(NAMESPACES)

    def _include(self, resource: Resource) -> None:
        if resource.namespaced:
            self._contents.append(resource)
            self.subscribe(resource, self._on_content)

    def _on_namespace(self, change: Change) -> None:
        if change.type == "DELETED":
            self._left.pop(change.current.name, None)
        elif change.current.obj["metadata"].get("deletionTimestamp"):
            self.enqueue(key_of(change))

    def _on_content(self, change: Change) -> None:
        name = change.current.namespace
        if change.type != "DELETED" or name not in self._left:
            return
        self._left[name] -= 1
        if self._left[name] <= 0:
            self.enqueue(Key("", name))

    def reconcile(self, key: Key) -> None:
        """Delete the content of a terminating namespace; remove the namespace if it is empty."""
        namespace = self.find(NAMESPACES, "", key.name)
        if namespace is None or not namespace.obj["metadata"].get("deletionTimestamp"):
            return
        self._left[key.name] = 0
        for resource in self._contents:
            self._empty(resource, key.name)
        remaining = self._remaining(key.name)
        self._left[key.name] = sum(len(found) for found in remaining.values())
        if remaining:
            self._report(key.name, remaining)
        else:
            self._finalize(key.name)

    def _empty(self, resource: Resource, namespace: str) -> None:
        for stored in list(self.store.collection(resource.stored_in).items(namespace)):
            if stored.obj["metadata"].get("deletionTimestamp"):
                continue
            if self.find(resource, namespace, stored.name) is None:
                continue
            self.delete(resource, stored, "Background")

    def _remaining(self, namespace: str) -> dict[str, list[Stored]]:
        found = {
            resource.qualified: self.store.collection(resource.stored_in).items(namespace)
            for resource in self._contents
        }
        return {name: list(objects) for name, objects in found.items() if objects}

    def _report(self, name: str, remaining: dict[str, list[Stored]]) -> None:
        now, phase = self.registry.clock.now(), {"phase": "Terminating"}
        self.registry.change_status(
            NAMESPACES, "", name, lambda obj: _with_conditions(obj, remaining, now) | phase
        )

    def _finalize(self, name: str) -> None:
        """Drop the controller's finalizer; without any other, remove the namespace."""
        namespace = self.find(NAMESPACES, "", name)
        if namespace is None:
            return
        spec = namespace.obj.get("spec") or {}
        others = [found for found in spec.get("finalizers") or () if found != FINALIZER]
        if not others and not namespace.obj["metadata"].get("finalizers"):
            self.store.remove(NAMESPACES.stored_in, namespace)
            return
        obj = editable(namespace)
        obj["spec"]["finalizers"] = others
        obj["status"] = _with_conditions(obj, {}, self.registry.clock.now())
        self.store.put(NAMESPACES.stored_in, obj)


def _with_conditions(obj: Json, remaining: dict[str, list[Stored]], now: str) -> Json:
    """The status of a terminating namespace, with kube-controller-manager's texts."""
    finalizers = Counter(
        finalizer
        for objects in remaining.values()
        for stored in objects
        for finalizer in stored.obj["metadata"].get("finalizers") or ()
    )
    problems = {}
    if remaining:
        counts = (f"{name} has {len(each)} resource instances" for name, each in remaining.items())
        why = f"Some resources are remaining: {', '.join(counts)}"
        problems["NamespaceContentRemaining"] = ("SomeResourcesRemain", why)
    if finalizers:
        held = (f"{name} in {count} resource instances" for name, count in finalizers.items())
        why = f"Some content in the namespace has finalizers remaining: {', '.join(held)}"
        problems["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", why)
    status = obj.get("status") or {}
    conditions = status.get("conditions") or []
    for kind, no_problem in _NO_PROBLEM.items():
        reason, message = problems.get(kind, no_problem)
        condition = {
            "type": kind,
            "status": str(kind in problems),
            "reason": reason,
            "message": message,
            "lastTransitionTime": now,
        }
        conditions = set_condition(conditions, condition)
    return {**status, "conditions": conditions}
