"""The order in which a limited search visits nodes: a node of each zone in turn.

Zones follow in the order in which they appeared, nodes of one zone in the order in which they came
(``nodeTree`` of kube-scheduler v1.36). A search that ends early so leaves out nodes of all zones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from stowage.api.values.csi_migration import REGION, REGION_BETA, ZONE, ZONE_BETA
from stowage.state.arrays import Int64Array, extended, read_only

Zone: TypeAlias = tuple[str, str]


class SearchOrder:
    """The rows of the nodes in search order; computed at most once after a change of nodes.

    Args:
        num_rows: Number of rows.
    """

    def __init__(self, num_rows: int) -> None:
        self._num_changes = 0
        self._zone_of: dict[int, Zone] = {}
        self._num_nodes: dict[Zone, int] = {}
        self._appeared_at: dict[Zone, int] = {}
        self._came = np.zeros(num_rows, dtype=np.int64)
        self._zone_came = np.zeros(num_rows, dtype=np.int64)
        self._rows: Int64Array | None = None
        self._ranks: Int64Array | None = None

    @property
    def rows(self) -> Int64Array:
        """``int64[nodes]``: the rows with a node, in search order."""
        if self._rows is None:
            known = np.fromiter(self._zone_of, dtype=np.int64, count=len(self._zone_of))
            order = zone_by_zone(self._zone_came[known], self._came[known])
            self._rows = read_only(known[order])
        return self._rows

    @property
    def ranks(self) -> Int64Array:
        """``int64[rows]``: the position of each row in `rows`, -1 for rows without a node."""
        if self._ranks is None:
            ranks = np.full(len(self._came), -1, dtype=np.int64)
            ranks[self.rows] = np.arange(len(self.rows))
            self._ranks = read_only(ranks)
        return self._ranks

    def zone_of(self, row: int) -> Zone | None:
        """The zone in which the node of a row is; None without a node."""
        return self._zone_of.get(row)

    def put(self, row: int, labels: Mapping[str, str]) -> None:
        """A node came, or its labels changed; a node that changes its zone is its last one."""
        zone = zone_of_labels(labels)
        if self._zone_of.get(row) == zone:
            return
        self.remove(row)
        self._num_changes += 1
        self._zone_of[row] = zone
        self._num_nodes[zone] = self._num_nodes.get(zone, 0) + 1
        self._came[row] = self._num_changes
        self._zone_came[row] = self._appeared_at.setdefault(zone, self._num_changes)

    def remove(self, row: int) -> None:
        """The node of a row is gone; a zone without nodes appears anew with its next node."""
        self._rows = self._ranks = None
        zone = self._zone_of.pop(row, None)
        if zone is None:
            return
        self._num_nodes[zone] -= 1
        if not self._num_nodes[zone]:
            del self._num_nodes[zone], self._appeared_at[zone]

    def grow(self, num_rows: int) -> None:
        """Make room for more rows."""
        self._came = extended(self._came, num_rows)
        self._zone_came = extended(self._zone_came, num_rows)
        self._ranks = None


def zone_of_labels(labels: Mapping[str, str]) -> Zone:
    """Region and zone of a node, the deprecated labels first; ``GetZoneKey`` of v1.36."""
    region = labels.get(REGION_BETA)
    zone = labels.get(ZONE_BETA)
    return (
        labels.get(REGION, "") if region is None else region,
        labels.get(ZONE, "") if zone is None else zone,
    )


def zone_by_zone(zone_came: Int64Array, came: Int64Array) -> Int64Array:
    """The order of some nodes: the first node of each zone, then the second of each, and so on.

    Args:
        zone_came: ``int64[nodes]``, equal for nodes of one zone; zones are in this order.
        came: ``int64[nodes]``, the order of the nodes within a zone.

    Returns:
        ``int64[nodes]``: indices.

    Examples:
        >>> zone_by_zone(np.array([1, 1, 3, 1]), np.array([1, 2, 3, 4])).tolist()
        [0, 2, 1, 3]
    """
    grouped = np.lexsort((came, zone_came))
    zones = zone_came[grouped]
    turn = np.arange(len(zones)) - np.searchsorted(zones, zones)
    order: Int64Array = grouped[np.lexsort((zones, turn))]
    return order
