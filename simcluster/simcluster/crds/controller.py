"""The controller of CustomResourceDefinitions: establishes them and cleans up deleted ones."""

from typing import Any

from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.crds.definitions import ESTABLISHED, is_established, resources_of
from simcluster.kinds.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from simcluster.store.deletion import DeleteOptions
from simcluster.store.registry import editable
from simcluster.store.store import Change, Stored

Json = dict[str, Any]

FINALIZER = CUSTOM_RESOURCE_DEFINITIONS.deletion_finalizer


class DefinitionController(Reconciler):
    """Keeps the catalog in sync with the stored definitions."""

    def follow(self) -> None:
        """Subscribe to definitions."""
        self._emptying: set[str] = set()
        self.subscribe(CUSTOM_RESOURCE_DEFINITIONS, self._on_change)
        self.enqueue_all(CUSTOM_RESOURCE_DEFINITIONS)

    def _on_change(self, change: Change) -> None:
        if change.type == "DELETED":
            self.registry.catalog.serve(change.current.name, ())
        elif is_established(change.current.obj):
            self.registry.catalog.serve(change.current.name, resources_of(change.current.obj))
        self.enqueue(key_of(change))

    def reconcile(self, key: Key) -> None:
        """Establish a new definition; delete the objects of a deleted one, then the definition."""
        stored = self.store.get(CUSTOM_RESOURCE_DEFINITIONS.stored_in, "", key.name)
        if stored is None:
            return
        if stored.obj["metadata"].get("deletionTimestamp"):
            self._remove(stored)
        elif not is_established(stored.obj):
            self._establish(stored)
        else:
            self.registry.catalog.serve(stored.name, resources_of(stored.obj))

    def _establish(self, stored: Stored) -> None:
        now = self.registry.clock.now()
        conflict = self._conflict(stored.obj)
        status = {**stored.obj["status"], "conditions": _conditions(now, conflict)}
        if not conflict:
            status["acceptedNames"] = stored.obj["spec"]["names"]
        self.store.put(CUSTOM_RESOURCE_DEFINITIONS.stored_in, {**stored.obj, "status": status})

    def _conflict(self, definition: Json) -> str:
        """The reason to refuse a definition's names: another one of its group has them."""
        names, group = definition["spec"]["names"], definition["spec"]["group"]
        for name, versions in self.registry.catalog.custom().items():
            other = versions[0]
            if other.group != group or name == definition["metadata"]["name"]:
                continue
            if other.kind == names["kind"]:
                return f'"{names["kind"]}" is already in use'
            taken = {other.plural, other.singular, *other.short_names}
            for word in (names["plural"], names["singular"], *(names.get("shortNames") or ())):
                if word in taken:
                    return f'"{word}" is already in use'
        return ""

    def _remove(self, stored: Stored) -> None:
        """Delete the custom resources first; objects with finalizers delay the removal."""
        if FINALIZER in (stored.obj["metadata"].get("finalizers") or ()):
            served = self.registry.catalog.custom().get(stored.name)
            if served and not self._is_emptied(stored.name, served[0]):
                return
            obj = editable(stored)
            obj["metadata"]["finalizers"].remove(FINALIZER)
            self.registry.replace(CUSTOM_RESOURCE_DEFINITIONS, stored, obj)

    def _is_emptied(self, definition: str, resource: Resource) -> bool:
        collection = self.store.collection(resource.stored_in)
        for found in list(collection):
            if not found.obj["metadata"].get("deletionTimestamp"):
                options = DeleteOptions(propagation_policy="Background")
                self.registry.delete(resource, found.namespace, found.name, options)
        if not len(collection):
            return True
        if definition not in self._emptying:
            self._emptying.add(definition)
            self.subscribe(resource, lambda _: self.enqueue(Key("", definition)))
        return False


def _conditions(now: str, conflict: str) -> list[Json]:
    if conflict:
        texts = (
            ("NamesAccepted", "False", "Conflict", conflict),
            (ESTABLISHED, "False", "NotAccepted", "not all names are accepted"),
        )
    else:
        texts = (
            ("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
            (ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    return [
        {
            "type": kind,
            "status": status,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
        for kind, status, reason, message in texts
    ]
