"""The order in which nodes are searched, node by node: zones, and where a search ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, zip_longest

REGIONS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
ZONES = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")


def zone_key(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Region and zone; of each the value of the first label that is there."""
    return tuple(
        next((labels[key] for key in keys if key in labels), "") for keys in (REGIONS, ZONES)
    )


class Zones:
    """The nodes of each zone, in lists; the twin of ``nodeTree``."""

    def __init__(self) -> None:
        self.lists: dict[tuple[str, ...], list[str]] = {}

    def put(self, name: str, labels: Mapping[str, str]) -> None:
        """Add a node, or move it if its zone has changed."""
        zone = zone_key(labels)
        if name not in self.lists.get(zone, []):
            self.remove(name)
            self.lists.setdefault(zone, []).append(name)

    def remove(self, name: str) -> None:
        """Remove a node, and its zone if no other node is there."""
        for zone, names in list(self.lists.items()):
            if name in names:
                names.remove(name)
                if not names:
                    del self.lists[zone]

    def order(self) -> list[str]:
        """The first node of each zone, the second of each zone, and so on."""
        in_turn = chain.from_iterable(zip_longest(*self.lists.values()))
        return [name for name in in_turn if name is not None]


def nodes_zone_by_zone(nodes: Iterable[tuple[str, Mapping[str, str]]]) -> list[str]:
    """The search order of nodes that came in this order."""
    zones = Zones()
    for name, labels in nodes:
        zones.put(name, labels)
    return zones.order()


def first_feasible(
    order: Sequence[str], fits: Callable[[str], bool], wanted: int, start: int
) -> tuple[list[str], int]:
    """The first feasible nodes, and how many nodes come before the next feasible one."""
    found: list[str] = []
    for visited in range(len(order)):
        name = order[(start + visited) % len(order)]
        if fits(name):
            if len(found) == wanted:
                return found, visited
            found.append(name)
    return found, len(order)
