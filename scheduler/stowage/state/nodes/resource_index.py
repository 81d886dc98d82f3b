"""Which column of `allocatable` and `requested` is which resource.

A resource has a column as long as some node names it. What pods ask for beyond that no node has:
it takes no column, whatever names pods come up with, and is written down by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from weakref import WeakKeyDictionary

import msgspec
import numpy as np

from stowage.api.values import resource_names
from stowage.state.arrays import Int64Array, read_only
from stowage.state.pods.pod_class import PodClass

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = range(4)
"""Columns that are always there: cpu in milli units, the rest in whole units."""

Items = tuple[tuple[int, int], ...]


class ClassRequests(msgspec.Struct, frozen=True):
    """What a pod of a class requests, without zeros.

    Attributes:
        version: Of the index it was read by.
        vector: ``int64[resources]``, read-only; without what has no column.
        items: (column, amount).
        elsewhere: (name, amount) of what has no column.
    """

    version: int
    vector: Int64Array
    items: Items
    elsewhere: tuple[tuple[str, int], ...]


class ResourceIndex:
    """Resource names and their columns; a column is used again once no node has its resource.

    Attributes:
        names: ``column -> resource name``; empty where a column is free.
        version: Grows whenever a column gets another meaning.
    """

    __slots__ = ("_columns", "_free", "_holders", "_requests", "names", "version")

    def __init__(self) -> None:
        self.names = [
            resource_names.CPU,
            resource_names.MEMORY,
            resource_names.EPHEMERAL_STORAGE,
            resource_names.PODS,
        ]
        self.version = 0
        self._columns = {name: column for column, name in enumerate(self.names)}
        self._holders = dict.fromkeys(range(len(self.names)), 1)
        self._free: list[int] = []
        self._requests: WeakKeyDictionary[PodClass, ClassRequests] = WeakKeyDictionary()

    def __len__(self) -> int:
        """How many columns there are, free ones included."""
        return len(self.names)

    def index_of(self, name: str) -> int | None:
        """The column of a resource, or None if no node names it."""
        return self._columns.get(name)

    def acquire(self, names: Iterable[str]) -> list[str]:
        """Hold a column for each of these resources; those that had none."""
        new = []
        for name in names:
            column = self._columns.get(name)
            if column is None:
                column = self._add(name)
                new.append(name)
            self._holders[column] = self._holders.get(column, 0) + 1
        return new

    def release(self, names: Iterable[str]) -> list[tuple[str, int]]:
        """Give back one hold on each of these; (name, column) of those that have none any more."""
        lost = []
        for name in names:
            column = self._columns[name]
            self._holders[column] -= 1
            if not self._holders[column]:
                del self._holders[column], self._columns[name]
                self.names[column] = ""
                self._free.append(column)
                self.version += 1
                lost.append((name, column))
        return lost

    def vector(self, amounts: Mapping[str, int]) -> Int64Array:
        """``int64[resources]`` of these amounts; what has no column is left out."""
        vector = np.zeros(len(self.names), dtype=np.int64)
        for name, amount in amounts.items():
            column = self._columns.get(name)
            if column is not None:
                vector[column] = amount
        return vector

    def requests(self, pod_class: PodClass) -> ClassRequests:
        """What a pod of the class requests; kept per class."""
        known = self._requests.get(pod_class)
        if known is None or known.version != self.version:
            known = self._requests[pod_class] = self._read(pod_class)
        return known

    def _read(self, pod_class: PodClass) -> ClassRequests:
        vector = read_only(self.vector(pod_class.requests))
        return ClassRequests(
            self.version,
            vector,
            tuple((column, amount) for column, amount in enumerate(vector.tolist()) if amount),
            tuple(
                (name, amount)
                for name, amount in pod_class.requests.items()
                if amount and name not in self._columns
            ),
        )

    def _add(self, name: str) -> int:
        if self._free:
            column = self._free.pop()
            self.names[column] = name
        else:
            column = len(self.names)
            self.names.append(name)
        self._columns[name] = column
        self.version += 1
        return column
