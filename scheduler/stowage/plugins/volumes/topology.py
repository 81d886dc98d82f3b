"""Finds the nodes where volumes can be used, by their node affinity."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from cachetools import LRUCache
from msgspec.structs import replace

from stowage.api.objects.node import NodeSelector
from stowage.api.objects.volume import PersistentVolume, VolumeNodeAffinity
from stowage.api.values.csi_migration import migrated_affinity, migrated_plugin_of
from stowage.api.values.node_affinity import NodeTerms, compile_node_selector
from stowage.api.values.selectors import Operator, Requirement
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.state.change_log import ChangeLog
from stowage.state.interning import ABSENT
from stowage.state.nodes.node_matching import node_terms_mask
from stowage.state.snapshot import NodeView

_MAX_SELECTORS = 16_384
#: From so many affinities on, positions are looked up by the value of a label.
_MANY = 16


class VolumeTopology:
    """Judges the node affinity of volumes; answers are kept until a node changes."""

    def __init__(self) -> None:
        self._rows: LRUCache[NodeSelector, Int64Array] = LRUCache(_MAX_SELECTORS)
        self._log: ChangeLog | None = None
        self._generation = 0

    def reachable(self, nodes: NodeView, volume: PersistentVolume) -> BoolArray | None:
        """``bool[nodes]``: where a bound volume can be reached; None says everywhere.

        A volume of a migrated plugin is looked for by its driver's labels on nodes that say so.
        """
        plain = affinity_mask(nodes, volume.spec.node_affinity)
        plugin = migrated_plugin_of(volume)
        migrated = None if plugin is None else nodes.snapshot.csi_nodes.migrated(plugin)
        if migrated is None:
            return plain
        translated = affinity_mask(nodes, migrated_affinity(volume))
        if plain is None and translated is None:
            return None
        is_migrated = nodes.take(migrated)
        everywhere = np.ones(len(nodes), dtype=np.bool_)
        there = everywhere if translated is None else translated
        mask: BoolArray = np.where(is_migrated, there, everywhere if plain is None else plain)
        return mask

    def positions(self, nodes: NodeView, affinity: VolumeNodeAffinity | None) -> Int64Array:
        """``int64[]``: positions of `nodes` that an affinity allows; kept for all nodes."""
        required = None if affinity is None else affinity.required
        if required is None:
            return np.arange(len(nodes))
        if not isinstance(nodes.index, slice) or nodes.snapshot.is_what_if:
            return np.flatnonzero(_mask(nodes, required))
        log = nodes.snapshot.node_changes
        if self._log is not log or self._generation != log.generation:
            self._rows.clear()
            self._log, self._generation = log, log.generation
        rows = self._rows.get(required)
        if rows is None:
            rows = self._rows[required] = np.flatnonzero(_mask(nodes, required))
        return rows

    def all_positions(
        self, nodes: NodeView, affinities: Sequence[VolumeNodeAffinity | None]
    ) -> list[Int64Array]:
        """`positions` of each affinity: of many local volumes, each is on the node of one name."""
        if len(affinities) < _MANY:
            return [self.positions(nodes, affinity) for affinity in affinities]
        by_label: dict[str, _PositionsByValue] = {}
        found = []
        for affinity in affinities:
            named = _only_values(affinity)
            if named is None:
                found.append(self.positions(nodes, affinity))
                continue
            of_label = by_label.get(named.key)
            if of_label is None:
                of_label = by_label[named.key] = _PositionsByValue(nodes, named.key)
            found.append(of_label.of(named.values))
        return found


class _PositionsByValue:
    """The positions of nodes by the value of a label.

    Args:
        nodes: The nodes.
        key: The label.
    """

    def __init__(self, nodes: NodeView, key: str) -> None:
        codes = nodes.label_codes(key)
        self._column = nodes.snapshot.label_column(key)
        self._order: Int64Array = codes.argsort(kind="stable")
        ends = np.arange(self._column.num_values + 1)
        self._starts = np.searchsorted(codes, ends, sorter=self._order)

    def of(self, values: Sequence[str]) -> Int64Array:
        """``int64[]``: where the label has one of these values, ascending."""
        codes = [self._column.values.get(value) for value in values]
        parts = [
            self._order[self._starts[code] : self._starts[code + 1]]
            for code in codes
            if code != ABSENT
        ]
        if len(parts) == 1:
            return parts[0]
        return np.sort(np.concatenate(parts)) if parts else self._order[:0]


def _only_values(affinity: VolumeNodeAffinity | None) -> Requirement | None:
    """The values that a label must have, if that is all an affinity demands."""
    required = None if affinity is None else affinity.required
    terms = () if required is None else compiled(required).terms
    if len(terms) != 1 or len(terms[0].labels) != 1 or terms[0].error:
        return None
    requirement = terms[0].labels[0]
    return requirement if requirement.operator is Operator.IN else None


def affinity_mask(nodes: NodeView, affinity: VolumeNodeAffinity | None) -> BoolArray | None:
    """``bool[nodes]``: where an affinity allows a volume; None means everywhere.

    ``CheckNodeAffinity``: it looks at labels only; what it says of fields is not judged, and terms
    that cannot be understood match nothing.
    """
    if affinity is None or affinity.required is None:
        return None
    return _mask(nodes, affinity.required)


def _mask(nodes: NodeView, required: NodeSelector) -> BoolArray:
    return node_terms_mask(nodes, compiled(required))


@lru_cache(maxsize=_MAX_SELECTORS)
def compiled(required: NodeSelector) -> NodeTerms:
    """A volume's node selector, as far as it is judged."""
    terms = compile_node_selector(required).terms
    return NodeTerms(tuple(replace(term, fields=()) for term in terms))
