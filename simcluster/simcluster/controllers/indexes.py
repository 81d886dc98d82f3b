"""Indexes over objects, kept up to date by changes."""

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from simcluster.controllers.ownership import controller_reference, is_finished
from simcluster.store.selectors import match_label_selector
from simcluster.store.store import Change, Store, Stored
from simcluster.values import Json

K = TypeVar("K")
Label = tuple[str, str]


class KeyedIndex(Generic[K]):
    """Objects by keys that are computed from them.

    Args:
        keys_of: the keys of an object.
    """

    def __init__(self, keys_of: Callable[[Stored], Iterable[K]]) -> None:
        self._keys_of = keys_of
        self._by_key: dict[K, dict[tuple[str, str], Stored]] = {}

    def add(self, stored: Stored) -> None:
        """Add an object, or replace its earlier state."""
        for key in self._keys_of(stored):
            self._by_key.setdefault(key, {})[stored.namespace, stored.name] = stored

    def see(self, change: Change) -> None:
        """Take a change into the index."""
        gone = set(self._keys_of(change.previous or change.current))
        if change.type != "DELETED":
            gone.difference_update(self._keys_of(change.current))
            self.add(change.current)
        for key in gone:
            objects = self._by_key.get(key, {})
            objects.pop((change.current.namespace, change.current.name), None)
            if not objects:
                self._by_key.pop(key, None)

    def of(self, key: K) -> list[Stored]:
        """The objects with a key, oldest first."""
        return list(self._by_key.get(key, {}).values())


class PodsByNode(KeyedIndex[str]):
    """Pods by the node that they are bound to."""

    def __init__(self) -> None:
        super().__init__(lambda pod: filter(None, [pod.obj["spec"].get("nodeName")]))
        self._listeners: list[Callable[[Change], None]] = []

    def on_change(self, listener: Callable[[Change], None]) -> None:
        """Call ``listener`` with each change of a bound pod."""
        self._listeners.append(listener)

    def see(self, change: Change) -> None:
        """Take a change into the index."""
        super().see(change)
        if change.current.obj["spec"].get("nodeName"):
            for listener in self._listeners:
                listener(change)


class PodsByClaim(KeyedIndex[tuple[str, str]]):
    """Unfinished pods by namespace and name of each claim that they use."""

    def __init__(self) -> None:
        super().__init__(lambda pod: () if is_finished(pod) else _claim_keys(pod))
        self._listeners: list[Callable[[str, str], None]] = []

    def on_change(self, listener: Callable[[str, str], None]) -> None:
        """Call ``listener`` with a claim's namespace and name when a pod that uses it changes."""
        self._listeners.append(listener)

    def see(self, change: Change) -> None:
        """Take a change into the index."""
        super().see(change)
        for key in _claim_keys(change.current):
            for listener in self._listeners:
                listener(*key)


def _claim_keys(pod: Stored) -> list[tuple[str, str]]:
    return [(pod.namespace, name) for name in claims_of(pod.obj)]


def claims_of(pod: Json) -> list[str]:
    """The names of a pod's claims, those of its ephemeral volumes included."""
    names = []
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            names.append(volume["persistentVolumeClaim"]["claimName"])
        elif "ephemeral" in volume:
            names.append(f"{pod['metadata']['name']}-{volume['name']}")
    return names


class OwnedObjects(KeyedIndex[str]):
    """Objects of one collection by the uid of their managing controller."""

    def __init__(self, store: Store, collection: str) -> None:
        super().__init__(lambda stored: [ref["uid"] for ref in _controllers(stored)])
        self._listeners: dict[str, list[Callable[[str, Json], None]]] = {}
        for stored in store.collection(collection):
            self.add(stored)

    def owned_by(self, owner: Stored) -> list[Stored]:
        """The objects that an owner manages, oldest first."""
        return self.of(owner.obj["metadata"]["uid"])

    def on_change(self, kind: str, listener: Callable[[str, Json], None]) -> None:
        """Call ``listener`` with namespace and reference after a change below such an owner."""
        self._listeners.setdefault(kind, []).append(listener)

    def see(self, change: Change) -> None:
        """Take a change into the index."""
        super().see(change)
        references = {ref["uid"]: ref for ref in _controllers(change.previous)}
        references |= {ref["uid"]: ref for ref in _controllers(change.current)}
        for reference in references.values():
            for listener in self._listeners.get(reference["kind"], ()):
                listener(change.current.namespace, reference)


def _controllers(stored: Stored | None) -> list[Json]:
    reference = controller_reference(stored.obj) if stored is not None else None
    return [] if reference is None else [reference]


class _Entry(NamedTuple):
    selector: Json
    anchor: Label | None


class SelectorIndex:
    """Names of objects by the labels they select, per namespace.

    A selector is filed under one of its ``matchLabels``. Labels are compared only with the
    selectors filed under one of them, and with the few that have no ``matchLabels``. An empty
    selector selects nothing here unless ``empty_selects``.
    """

    def __init__(self, *, empty_selects: bool = False) -> None:
        self._empty_selects = empty_selects
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._names: dict[tuple[str, Label | None], dict[str, None]] = {}

    def put(self, namespace: str, name: str, selector: Json | None) -> None:
        """Add an object, or replace its selector."""
        self.discard(namespace, name)
        if selector or (self._empty_selects and selector is not None):
            anchor = min((selector.get("matchLabels") or {}).items(), default=None)
            self._entries[namespace, name] = _Entry(selector, anchor)
            self._names.setdefault((namespace, anchor), {})[name] = None

    def discard(self, namespace: str, name: str) -> None:
        """Remove an object, if it is there."""
        entry = self._entries.pop((namespace, name), None)
        if entry is not None:
            place = (namespace, entry.anchor)
            del self._names[place][name]
            if not self._names[place]:
                del self._names[place]

    def selecting(self, selected: Stored) -> list[str]:
        """The names of the objects that select an object of their namespace."""
        return self.selecting_labels(selected.namespace, selected.labels)

    def selecting_labels(self, namespace: str, labels: Mapping[str, str]) -> list[str]:
        """The names of a namespace's objects that select ``labels``."""
        return [
            name
            for anchor in (None, *labels.items())
            for name in self._names.get((namespace, anchor), ())
            if match_label_selector(self._entries[namespace, name].selector, labels)
        ]
