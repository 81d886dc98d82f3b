"""Pods that come to some nodes, as arrays: asked once per variant of pod, summed up per node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from stowage.state.arrays import BoolArray, Int64Array
from stowage.state.nodes.resource_index import ResourceIndex
from stowage.state.pods.pod_class import PodClass
from stowage.state.pods.pod_info import PodInfo
from stowage.state.pods.pod_variants import PodVariant, PodVariants

PodValue = Callable[[PodClass, bool], int]
"""A number for a pod of this class that is (or is not) being deleted."""


class AddedPods:
    """Pods by the place of their node in a view.

    Args:
        places: ``int64[pods]``.
        codes: ``int64[pods]``, which variant each pod is of.
        known_variants: What the codes stand for.
        known: Pods, these among others.
        index: ``int64[pods]``, where in `known` each pod is.
    """

    __slots__ = ("_codes", "_index", "_known", "_known_variants", "_places")

    def __init__(
        self,
        places: Int64Array,
        codes: Int64Array,
        known_variants: PodVariants,
        known: Sequence[PodInfo],
        index: Int64Array,
    ) -> None:
        self._places = places
        self._codes = codes
        self._known_variants = known_variants
        self._known = known
        self._index = index

    def __len__(self) -> int:
        return len(self._places)

    def at(self, positions: Int64Array, num_places: int) -> AddedPods:
        """Those at some of the places there are now, by their index in `positions`."""
        index: Int64Array = np.full(num_places, -1, dtype=np.int64)
        index[positions] = np.arange(len(positions))
        places = index[self._places]
        kept = np.flatnonzero(places >= 0)
        return AddedPods(
            places[kept], self._codes[kept], self._known_variants, self._known, self._index[kept]
        )

    def present(self, num_places: int) -> BoolArray:
        """``bool[places]``: where there are any."""
        present: BoolArray = np.zeros(num_places, dtype=np.bool_)
        present[self._places] = True
        return present

    def on(self, place: int) -> list[PodInfo]:
        """The pods at one place."""
        return [self._known[index] for index in self._index[self._places == place].tolist()]

    def with_volumes(self) -> Iterator[tuple[int, PodInfo]]:
        """(place, pod) of the pods with volumes."""
        for place, index in zip(self._places.tolist(), self._index.tolist(), strict=True):
            if self._known[index].volumes:
                yield place, self._known[index]

    def variants(self) -> list[PodVariant]:
        """The variants of these pods, each once."""
        return [variant for _, variant in self._by_code()]

    def sum(self, ask: PodValue, num_places: int) -> Int64Array:
        """``int64[places]``: the sum of a number per pod."""
        total: Int64Array = np.zeros(num_places, dtype=np.int64)
        values = np.zeros(len(self._known_variants.values), dtype=np.int64)
        for code, variant in self._by_code():
            values[code] = ask(*variant)
        np.add.at(total, self._places, values[self._codes])
        return total

    def add_requests(self, used: Int64Array) -> None:
        """Add to ``used[places, resources + 3]`` what the pods take; see `PodVariants`."""
        amounts = self._known_variants.requests()[self._codes]
        if np.bincount(self._places).max(initial=0) <= 1:
            used[self._places] += amounts
        else:
            np.add.at(used, self._places, amounts)

    def _by_code(self) -> Iterator[tuple[int, PodVariant]]:
        values = self._known_variants.values
        for code in np.unique(self._codes).tolist():
            variant = values[code]
            if variant is not None:
                yield code, variant


_NONE: Int64Array = np.empty(0, dtype=np.int64)

NOBODY = AddedPods(_NONE, _NONE, PodVariants(ResourceIndex()), (), _NONE)
