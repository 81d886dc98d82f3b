"""Which column of `allocatable` and `requested` is which resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from scheduler.api import resource_names
from scheduler.state.arrays import Int64Array, read_only
from scheduler.state.pod_class import PodClass

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = range(4)
"""Columns that are always there: cpu in milli units, the rest in whole units."""


class ResourceIndex:
    """Resource names and their columns; a name never moves.

    Attributes:
        names: ``column -> resource name``.
    """

    __slots__ = ("_columns", "_vectors", "names")

    def __init__(self) -> None:
        self.names = [
            resource_names.CPU,
            resource_names.MEMORY,
            resource_names.EPHEMERAL_STORAGE,
            resource_names.PODS,
        ]
        self._columns = {name: column for column, name in enumerate(self.names)}
        self._vectors: WeakKeyDictionary[
            PodClass, tuple[Int64Array, tuple[tuple[int, int], ...]]
        ] = WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self.names)

    def index_of(self, name: str) -> int | None:
        """The column of a resource, or None if no node or pod was ever seen with it."""
        return self._columns.get(name)

    def vector(self, amounts: Mapping[str, int]) -> Int64Array:
        """``int64[resources]`` of these amounts; resources not seen before get a column."""
        columns = [self._column(name) for name in amounts]
        vector = np.zeros(len(self.names), dtype=np.int64)
        vector[columns] = list(amounts.values())
        return vector

    def request_vector(self, pod_class: PodClass) -> Int64Array:
        """``int64[resources]`` of what a pod of the class requests; read-only, kept per class."""
        return self._requests(pod_class)[0]

    def request_items(self, pod_class: PodClass) -> Sequence[tuple[int, int]]:
        """(column, amount) of what a pod of the class requests, without zeros; kept per class."""
        return self._requests(pod_class)[1]

    def _requests(self, pod_class: PodClass) -> tuple[Int64Array, tuple[tuple[int, int], ...]]:
        known = self._vectors.get(pod_class)
        if known is not None and len(known[0]) == len(self.names):
            return known
        vector = read_only(self.vector(pod_class.requests))
        items = tuple((column, amount) for column, amount in enumerate(vector.tolist()) if amount)
        self._vectors[pod_class] = (vector, items)
        return vector, items

    def _column(self, name: str) -> int:
        column = self._columns.get(name)
        if column is None:
            column = len(self.names)
            self.names.append(name)
            self._columns[name] = column
        return column
