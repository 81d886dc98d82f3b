"""Selectors of Services, ReplicationControllers, ReplicaSets and StatefulSets.

Default topology spreading derives a selector for a pod from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from stowage.api.objects.meta import LabelSelector
from stowage.api.values.selectors import selector_from_labels
from stowage.state.pods.selector_buckets import SelectorBuckets

_NONE: Mapping[str, LabelSelector | None] = MappingProxyType({})


class Workloads:
    """Selectors by kind, namespace and name; written by the cache only.

    Attributes:
        generation: Grows with every change.
    """

    __slots__ = ("_buckets", "_selectors", "generation")

    def __init__(self) -> None:
        self.generation = 0
        self._selectors: dict[tuple[str, str], dict[str, LabelSelector | None]] = {}
        # Of the kinds and namespaces that `selecting` was asked about.
        self._buckets: dict[tuple[str, str], SelectorBuckets[str]] = {}

    def selector_of(self, kind: str, namespace: str, name: str) -> LabelSelector | None:
        """The selector of an object; None if it has none or is unknown."""
        return self.in_namespace(kind, namespace).get(name)

    def in_namespace(self, kind: str, namespace: str) -> Mapping[str, LabelSelector | None]:
        """Name -> selector, for all objects of a kind in a namespace."""
        return self._selectors.get((kind, namespace), _NONE)

    def selecting(
        self, kind: str, namespace: str, labels: Mapping[str, str]
    ) -> Iterator[LabelSelector]:
        """The selectors of a kind in a namespace whose ``matchLabels`` are among a pod's labels.

        Others are hardly looked at, however many there are; only the first question about a kind
        and a namespace looks at all.
        """
        home = kind, namespace
        of_kind = self._selectors.get(home)
        if of_kind is None:
            return
        if home not in self._buckets:
            self._buckets[home] = SelectorBuckets()
            for name, selector in of_kind.items():
                self._index(home, name, selector)
        for name in self._buckets[home].candidates(namespace, labels):
            found = of_kind[name]
            if found is not None and found.match_labels.items() <= labels.items():
                yield found

    def update(self, kind: str, namespace: str, name: str, selector: LabelSelector | None) -> bool:
        """Add or update an object; returns whether its selector changed."""
        of_kind = self._selectors.setdefault((kind, namespace), {})
        if name in of_kind and of_kind[name] == selector:
            return False
        self._unindex((kind, namespace), name, of_kind.get(name))
        of_kind[name] = selector
        self._index((kind, namespace), name, selector)
        self.generation += 1
        return True

    def remove(self, kind: str, namespace: str, name: str) -> bool:
        """Remove an object; returns whether it was known."""
        of_kind = self._selectors.get((kind, namespace))
        if of_kind is None or name not in of_kind:
            return False
        self._unindex((kind, namespace), name, of_kind.pop(name))
        if not of_kind:
            del self._selectors[kind, namespace]
            self._buckets.pop((kind, namespace), None)
        self.generation += 1
        return True

    def _index(self, home: tuple[str, str], name: str, selector: LabelSelector | None) -> None:
        buckets = self._buckets.get(home)
        if buckets is not None and selector is not None:
            buckets.add(name, selector_from_labels(selector.match_labels), home[1:])

    def _unindex(self, home: tuple[str, str], name: str, selector: LabelSelector | None) -> None:
        buckets = self._buckets.get(home)
        if buckets is not None and selector is not None:
            buckets.discard(name, selector_from_labels(selector.match_labels), home[1:])
