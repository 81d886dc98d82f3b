"""Namespaces and their labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np
from cachetools import LRUCache

from stowage.api.objects.namespace import Namespace
from stowage.api.values.selectors import Selector
from stowage.state.arrays import grown_capacity
from stowage.state.nodes.label_columns import LabelColumns

_NO_LABELS: Mapping[str, str] = MappingProxyType({})
_MAX_SELECTORS = 256


class Namespaces:
    """Labels by namespace; written by the cache only.

    Attributes:
        generation: Grows with every change of a namespace's labels.
    """

    __slots__ = (
        "_columns",
        "_free",
        "_labels",
        "_matching",
        "_names",
        "_rows",
        "_sets",
        "generation",
    )

    def __init__(self) -> None:
        self.generation = 0
        self._labels: dict[str, dict[str, str]] = {}
        self._sets: LRUCache[tuple[int, bytes], frozenset[str]] = LRUCache(_MAX_SELECTORS)
        self._rows: dict[str, int] = {}
        self._names: list[str] = []
        self._free: list[int] = []
        self._columns = LabelColumns(self._labels_on, 0, keeps_unused=False)
        self._matching: LRUCache[Selector, tuple[int, frozenset[str]]] = LRUCache(_MAX_SELECTORS)

    def __contains__(self, name: object) -> bool:
        return name in self._labels

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels)

    def __len__(self) -> int:
        return len(self._labels)

    def labels(self, name: str) -> Mapping[str, str]:
        """The labels of a namespace, none if it is unknown; the same object until they change."""
        return self._labels.get(name, _NO_LABELS)

    def matching(self, selector: Selector) -> frozenset[str]:
        """The namespaces whose labels `selector` matches; the same object until they change."""
        known = self._matching.get(selector)
        if known is not None and known[0] == self.generation:
            return known[1]
        names = self._names_matching(selector)
        if known is not None and known[1] == names:
            names = known[1]
        self._matching[selector] = (self.generation, names)
        return names

    def update(self, namespace: Namespace) -> bool:
        """Add or update a namespace; returns whether it is new or its labels changed."""
        name, labels = namespace.metadata.name, namespace.metadata.labels
        before = self._labels.get(name)
        if before == labels:
            return False
        if name not in self._rows:
            self._add_row(name)
        self._columns.update(self._rows[name], before or _NO_LABELS, labels)
        self._labels[name] = labels
        self.generation += 1
        return True

    def remove(self, name: str) -> bool:
        """Remove a namespace; returns whether it was known."""
        labels = self._labels.pop(name, None)
        if labels is None:
            return False
        row = self._rows.pop(name)
        self._columns.update(row, labels, _NO_LABELS)
        self._names[row] = ""
        self._free.append(row)
        self.generation += 1
        return True

    def _names_matching(self, selector: Selector) -> frozenset[str]:
        """A requirement is evaluated once per distinct label value, not once per namespace."""
        mask = self._columns.mask(selector)
        key = (self.generation, mask.tobytes())
        names = self._sets.get(key)
        if names is None:
            found = map(self._names.__getitem__, np.flatnonzero(mask).tolist())
            names = self._sets[key] = frozenset(filter(None, found))
        return names

    def _labels_on(self, row: int) -> Mapping[str, str]:
        return self._labels.get(self._names[row], _NO_LABELS)

    def _add_row(self, name: str) -> None:
        if not self._free:
            num_rows = grown_capacity(len(self._names))
            self._free.extend(range(num_rows - 1, len(self._names) - 1, -1))
            self._names.extend([""] * (num_rows - len(self._names)))
            self._columns.grow(num_rows)
        row = self._rows[name] = self._free.pop()
        self._names[row] = name
