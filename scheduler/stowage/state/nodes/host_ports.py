"""Host ports in use: how many pods of each row use each port."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stowage.state.arrays import BoolArray, Int32Array, Int64Array, extended
from stowage.state.pods.pod_class import ANY_IP, HostPort
from stowage.state.sparse_column import SparseColumn


class _Users:
    """The number of pods per row that use a port; an array once many rows have such pods.

    A pod may use thousands of ports that no other pod uses, so one array per port is too much.
    """

    __slots__ = ("_column", "_few")

    def __init__(self) -> None:
        self._few = SparseColumn()
        self._column: Int32Array | None = None

    def add(self, row: int, delta: int, num_rows: int) -> None:
        if self._column is not None:
            self._column[row] += delta
            return
        self._few.add(row, delta)
        if self._few.is_dense(num_rows):
            self._column = self.per_row(num_rows)
            self._few = SparseColumn()

    def at(self, row: int) -> int:
        return self._few.counts.get(row, 0) if self._column is None else int(self._column[row])

    def per_row(self, num_rows: int) -> Int32Array:
        """``int32[rows]``; callers must not write."""
        if self._column is not None:
            return self._column
        return self._few.to_array(num_rows).astype(np.int32)

    def mark(self, rows: BoolArray) -> None:
        """Set ``bool[rows]`` where there are users."""
        if self._column is not None:
            rows |= self._column > 0
        else:
            rows[list(self._few.counts)] = True

    def grow(self, num_rows: int) -> None:
        if self._column is not None:
            self._column = extended(self._column, num_rows)

    def copy(self) -> _Users:
        twin = _Users()
        twin._few = SparseColumn(self._few.counts)
        twin._column = None if self._column is None else self._column.copy()
        return twin


class HostPorts:
    """Host ports in use on each row, with the number of pods that use them."""

    __slots__ = ("_counts", "_num_rows", "_totals")

    def __init__(self, num_rows: int) -> None:
        self._num_rows = num_rows
        self._counts: dict[tuple[str, int], dict[str, _Users]] = {}
        self._totals: dict[HostPort, int] = {}

    def add(self, row: int, ports: Iterable[HostPort]) -> None:
        """Add the ports of a pod on `row`."""
        for port in ports:
            ip, protocol, number = port
            by_ip = self._counts.setdefault((protocol, number), {})
            if ip not in by_ip:
                by_ip[ip] = _Users()
            by_ip[ip].add(row, 1, self._num_rows)
            self._totals[port] = self._totals.get(port, 0) + 1

    def remove(self, row: int, ports: Iterable[HostPort]) -> None:
        """Remove the ports of a pod on `row`."""
        for port in ports:
            ip, protocol, number = port
            by_ip = self._counts[protocol, number]
            by_ip[ip].add(row, -1, self._num_rows)
            self._totals[port] -= 1
            if not self._totals[port]:
                del self._totals[port], by_ip[ip]
                if not by_ip:
                    del self._counts[protocol, number]

    def in_conflict(self, ports: Iterable[HostPort], rows: slice | Int64Array) -> BoolArray:
        """``bool[rows]``: where a port in use collides with one of `ports`.

        The same protocol and number collide if the IPs are equal or one of them is 0.0.0.0
        (``HostPortInfo.CheckConflict``).
        """
        conflicts = np.zeros(self._num_rows, dtype=np.bool_)
        for ip, protocol, number in ports:
            by_ip = self._counts.get((protocol, number), {})
            for used_ip, users in by_ip.items():
                if ip in (ANY_IP, used_ip) or used_ip == ANY_IP:
                    users.mark(conflicts)
        return conflicts[rows]

    def colliding(self, ports: Iterable[HostPort]) -> dict[HostPort, Int32Array]:
        """The ports in use that collide with one of `ports` -> ``int32[rows]`` number of users."""
        found: dict[HostPort, Int32Array] = {}
        for ip, protocol, number in ports:
            for used_ip, users in self._counts.get((protocol, number), {}).items():
                if ip in (ANY_IP, used_ip) or used_ip == ANY_IP:
                    found[used_ip, protocol, number] = users.per_row(self._num_rows)
        return found

    def on_row(self, row: int) -> dict[HostPort, int]:
        """The ports in use on a row -> number of users."""
        return {
            (ip, protocol, number): users.at(row)
            for (protocol, number), by_ip in self._counts.items()
            for ip, users in by_ip.items()
            if users.at(row)
        }

    def grow(self, num_rows: int) -> None:
        """Extend the arrays to `num_rows`."""
        self._num_rows = num_rows
        for by_ip in self._counts.values():
            for users in by_ip.values():
                users.grow(num_rows)

    def copy(self) -> HostPorts:
        """An independent copy."""
        twin = HostPorts(self._num_rows)
        twin._totals = dict(self._totals)
        twin._counts = {
            port: {ip: users.copy() for ip, users in by_ip.items()}
            for port, by_ip in self._counts.items()
        }
        return twin


def ports_conflict(one: HostPort, other: HostPort) -> bool:
    """Whether two host ports conflict (``HostPortInfo.CheckConflict``)."""
    return one[1:] == other[1:] and (one[0] == other[0] or ANY_IP in (one[0], other[0]))
