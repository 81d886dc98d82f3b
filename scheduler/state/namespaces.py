"""Namespaces and their labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from cachetools import LRUCache

from scheduler.api.namespace import Namespace
from scheduler.api.selectors import Selector

_NO_LABELS: Mapping[str, str] = MappingProxyType({})
_MAX_SELECTORS = 256


class Namespaces:
    """Labels by namespace; written by the cache only.

    Attributes:
        generation: Grows with every change of some namespace's labels.
    """

    __slots__ = ("_labels", "_matching", "generation")

    def __init__(self) -> None:
        self.generation = 0
        self._labels: dict[str, dict[str, str]] = {}
        self._matching: LRUCache[Selector, tuple[int, frozenset[str]]] = LRUCache(_MAX_SELECTORS)

    def __contains__(self, name: object) -> bool:
        return name in self._labels

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels)

    def __len__(self) -> int:
        return len(self._labels)

    def labels(self, name: str) -> Mapping[str, str]:
        """The labels of a namespace; none if it is not known. The same object until they change."""
        return self._labels.get(name, _NO_LABELS)

    def matching(self, selector: Selector) -> frozenset[str]:
        """The known namespaces whose labels `selector` matches; the same object until a change."""
        known = self._matching.get(selector)
        if known is not None and known[0] == self.generation:
            return known[1]
        names = frozenset(name for name, labels in self._labels.items() if selector.matches(labels))
        if known is not None and known[1] == names:
            names = known[1]
        self._matching[selector] = (self.generation, names)
        return names

    def seen(self, namespace: Namespace) -> bool:
        """Note a namespace; returns whether it was unknown or its labels changed."""
        name, labels = namespace.metadata.name, namespace.metadata.labels
        if self._labels.get(name) == labels:
            return False
        self._labels[name] = labels
        self.generation += 1
        return True

    def gone(self, name: str) -> bool:
        """Note that a namespace was deleted; returns whether it was known."""
        if self._labels.pop(name, None) is None:
            return False
        self.generation += 1
        return True
