"""Selectors of Services, ReplicationControllers, ReplicaSets and StatefulSets.

Default topology spreading derives a selector for a pod from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from stowage.api.objects.meta import LabelSelector

_NONE: Mapping[str, LabelSelector | None] = MappingProxyType({})


class Workloads:
    """Selectors by kind, namespace and name; written by the cache only.

    Attributes:
        generation: Grows with every change.
    """

    __slots__ = ("_selectors", "generation")

    def __init__(self) -> None:
        self.generation = 0
        self._selectors: dict[tuple[str, str], dict[str, LabelSelector | None]] = {}

    def selector_of(self, kind: str, namespace: str, name: str) -> LabelSelector | None:
        """The selector of an object; None if it has none or is unknown."""
        return self.in_namespace(kind, namespace).get(name)

    def in_namespace(self, kind: str, namespace: str) -> Mapping[str, LabelSelector | None]:
        """Name -> selector, for all objects of a kind in a namespace."""
        return self._selectors.get((kind, namespace), _NONE)

    def update(self, kind: str, namespace: str, name: str, selector: LabelSelector | None) -> bool:
        """Add or update an object; returns whether its selector changed."""
        of_kind = self._selectors.setdefault((kind, namespace), {})
        if name in of_kind and of_kind[name] == selector:
            return False
        of_kind[name] = selector
        self.generation += 1
        return True

    def remove(self, kind: str, namespace: str, name: str) -> bool:
        """Remove an object; returns whether it was known."""
        of_kind = self._selectors.get((kind, namespace))
        if of_kind is None or name not in of_kind:
            return False
        del of_kind[name]
        if not of_kind:
            del self._selectors[kind, namespace]
        self.generation += 1
        return True
