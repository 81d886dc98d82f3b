"""Namespaces that are being deleted: their content goes first."""

from collections import Counter
from typing import Any

from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.kinds.resources import NAMESPACES, Resource
from simcluster.store.deletion import DeleteOptions
from simcluster.store.registry import editable
from simcluster.store.store import Change, Stored

Json = dict[str, Any]

FINALIZER = "kubernetes"
_GOING_WELL: tuple[tuple[str, bool, str, str], ...] = (
    (
        "NamespaceDeletionDiscoveryFailure",
        False,
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        False,
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        False,
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)


class NamespaceController(Reconciler):
    """Empties terminating namespaces and removes them once they are empty.

    A namespace is gone through when its deletion begins and when what was left is gone; each object
    that goes in between is only counted.
    """

    def follow(self) -> None:
        """Follow namespaces, and what leaves them."""
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
        """Delete what is in a terminating namespace; remove it if nothing is."""
        namespace = self.store.get(NAMESPACES.stored_in, "", key.name)
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
            if self.store.get(resource.stored_in, namespace, stored.name) is None:
                continue
            options = DeleteOptions(propagation_policy="Background")
            self.registry.delete(resource, namespace, stored.name, options)

    def _remaining(self, namespace: str) -> dict[str, list[Stored]]:
        found = {
            resource.qualified: self.store.collection(resource.stored_in).items(namespace)
            for resource in self._contents
        }
        return {name: list(objects) for name, objects in found.items() if objects}

    def _report(self, name: str, remaining: dict[str, list[Stored]]) -> None:
        now = self.registry.clock.now()
        conditions = namespace_conditions(remaining, now)
        self.registry.change_status(
            NAMESPACES,
            "",
            name,
            lambda obj: {
                **(obj.get("status") or {}),
                "phase": "Terminating",
                "conditions": _kept_times(obj, conditions),
            },
        )

    def _finalize(self, name: str) -> None:
        """Drop our finalizer; without any other the namespace is gone."""
        namespace = self.store.get(NAMESPACES.stored_in, "", name)
        if namespace is None:
            return
        spec = namespace.obj.get("spec") or {}
        others = [found for found in spec.get("finalizers") or () if found != FINALIZER]
        if not others and not namespace.obj["metadata"].get("finalizers"):
            self.store.remove(NAMESPACES.stored_in, namespace)
            return
        obj = editable(namespace)
        obj["spec"]["finalizers"] = others
        conditions = namespace_conditions({}, self.registry.clock.now())
        obj["status"] = {**obj.get("status", {}), "conditions": _kept_times(obj, conditions)}
        self.store.put(NAMESPACES.stored_in, obj)


def namespace_conditions(remaining: dict[str, list[Stored]], now: str) -> list[Json]:
    """The conditions of a terminating namespace, in kube-controller-manager's words."""
    finalizers = Counter(
        finalizer
        for objects in remaining.values()
        for stored in objects
        for finalizer in stored.obj["metadata"].get("finalizers") or ()
    )
    counts = ", ".join(
        f"{name} has {len(objects)} resource instances" for name, objects in remaining.items()
    )
    held = ", ".join(f"{name} in {count} resource instances" for name, count in finalizers.items())
    conditions = [_condition(*row, now=now) for row in _GOING_WELL]
    if remaining:
        why = f"Some resources are remaining: {counts}"
        content = _condition("NamespaceContentRemaining", True, "SomeResourcesRemain", why, now=now)
    else:
        why = "All content successfully removed"
        content = _condition("NamespaceContentRemaining", False, "ContentRemoved", why, now=now)
    if finalizers:
        why = f"Some content in the namespace has finalizers remaining: {held}"
        final = _condition(
            "NamespaceFinalizersRemaining", True, "SomeFinalizersRemain", why, now=now
        )
    else:
        why = "All content-preserving finalizers finished"
        final = _condition(
            "NamespaceFinalizersRemaining", False, "ContentHasNoFinalizers", why, now=now
        )
    return [*conditions, content, final]


def _condition(kind: str, is_true: bool, reason: str, message: str, *, now: str) -> Json:
    return {
        "type": kind,
        "status": str(is_true),
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
    }


def _kept_times(obj: Json, conditions: list[Json]) -> list[Json]:
    """Conditions with the transition times of those whose status did not change."""
    before = {old["type"]: old for old in (obj.get("status") or {}).get("conditions") or ()}
    return [
        {**found, "lastTransitionTime": before[found["type"]]["lastTransitionTime"]}
        if before.get(found["type"], {}).get("status") == found["status"]
        else found
        for found in conditions
    ]
