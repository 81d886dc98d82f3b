"""The columns of resources in `allocatable` and `requested`.

A resource has a column while some node has the resource. Requests for other resources are counted
apart, so that pods cannot add columns.
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
"""Columns of the standard resources: cpu in milli units, the others in whole units."""

Items = tuple[tuple[int, int], ...]
#: More nodes than this have a common resource.
_MANY_HOLDERS = 8


class ClassRequests(msgspec.Struct, frozen=True):
    """What a pod of a class requests, without zeros.

    Attributes:
        version: The version of the resource index.
        vector: ``int64[resources]``, read-only; without resources that have no column.
        items: (column, amount).
        elsewhere: (name, amount) of resources without a column.
    """

    version: int
    vector: Int64Array
    items: Items
    elsewhere: tuple[tuple[str, int], ...]


class ResourceIndex:
    """Resource names and their columns; a column is reused when no node has its resource.

    Attributes:
        names: ``column -> resource name``; empty where a column is free.
        version: Grows when a column gets or loses its resource.
        requested_columns: The columns in which a pod may have requested something.
    """

    __slots__ = (
        "_columns",
        "_free",
        "_holders",
        "_requests",
        "names",
        "requested_columns",
        "version",
    )

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
        self.requested_columns = set(self._holders)
        self._free: list[int] = []
        self._requests: WeakKeyDictionary[PodClass, ClassRequests] = WeakKeyDictionary()

    def __len__(self) -> int:
        """Number of columns, including free ones."""
        return len(self.names)

    def index_of(self, name: str) -> int | None:
        """The column of a resource; None if no node has it."""
        return self._columns.get(name)

    def column_of(self, name: str) -> int:
        """The column of a resource that some node has.

        Raises:
            KeyError: No node has it.
        """
        return self._columns[name]

    def acquire(self, names: Iterable[str]) -> list[str]:
        """Add a holder to the columns of these resources; returns those that had no column."""
        new = []
        for name in names:
            column = self._columns.get(name)
            if column is None:
                column = self._add(name)
                new.append(name)
            self._holders[column] = self._holders.get(column, 0) + 1
        return new

    def release(self, names: Iterable[str]) -> list[tuple[str, int]]:
        """Remove a holder from these resources; returns (name, column) of those without holders."""
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

    def common_columns(self) -> list[int]:
        """The columns of standard resources and of those that many nodes have."""
        return [
            column
            for column, holders in self._holders.items()
            if column <= PODS or holders > _MANY_HOLDERS
        ]

    def note_requested(self, name: str) -> None:
        """Note that a pod requests something in the column of a resource."""
        self.requested_columns.add(self._columns[name])

    def forget_requested(self, column: int) -> bool:
        """Whether a pod may have requested something in a column; from now on none has."""
        may_have = column in self.requested_columns
        self.requested_columns.discard(column)
        return may_have

    def vector(self, amounts: Mapping[str, int]) -> Int64Array:
        """``int64[resources]`` of these amounts, without resources that have no column."""
        vector = np.zeros(len(self.names), dtype=np.int64)
        for name, amount in amounts.items():
            column = self._columns.get(name)
            if column is not None:
                vector[column] = amount
        return vector

    def requests(self, pod_class: PodClass) -> ClassRequests:
        """What a pod of the class requests; cached per class."""
        known = self._requests.get(pod_class)
        if known is None or known.version != self.version:
            known = self._requests[pod_class] = self._read(pod_class)
        return known

    def _read(self, pod_class: PodClass) -> ClassRequests:
        vector = read_only(self.vector(pod_class.requests))
        items = tuple((column, amount) for column, amount in enumerate(vector.tolist()) if amount)
        self.requested_columns.update(column for column, _ in items)
        return ClassRequests(
            self.version,
            vector,
            items,
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
