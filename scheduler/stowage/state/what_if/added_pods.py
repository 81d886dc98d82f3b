"""Pods added to nodes of a what-if, as arrays: values per variant, sums per node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from stowage.state.arrays import BoolArray, Int64Array
from stowage.state.nodes.resource_index import ResourceIndex
from stowage.state.pods.pod_class import PodClass
from stowage.state.pods.pod_info import PodInfo
from stowage.state.pods.pod_variants import PodVariant, PodVariants

PodValue = Callable[[PodClass, bool], int]
"""(pod class, whether the pod is terminating) -> a number for the pod."""


class AddedPods:
    """Pods by the place of their node in a view.

    Args:
        places: ``int64[pods]``.
        codes: ``int64[pods]``, codes of variants.
        known_variants: The variants.
        known: Pods, including the added ones.
        index: ``int64[pods]``, the index of each added pod in `known`.
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
        """The pods at some of `num_places` places; their new place is the index in `positions`."""
        index: Int64Array = np.full(num_places, -1, dtype=np.int64)
        index[positions] = np.arange(len(positions))
        places = index[self._places]
        kept = np.flatnonzero(places >= 0)
        return AddedPods(
            places[kept], self._codes[kept], self._known_variants, self._known, self._index[kept]
        )

    def present(self, num_places: int) -> BoolArray:
        """``bool[places]``: which places have pods."""
        present: BoolArray = np.zeros(num_places, dtype=np.bool_)
        present[self._places] = True
        return present

    def on(self, place: int) -> list[PodInfo]:
        """The pods at a place."""
        return [self._known[index] for index in self._index[self._places == place].tolist()]

    def with_volumes(self) -> Iterator[tuple[int, PodInfo]]:
        """(place, pod) of the pods with volumes."""
        for place, index in zip(self._places.tolist(), self._index.tolist(), strict=True):
            if self._known[index].volumes:
                yield place, self._known[index]

    def variants(self) -> list[PodVariant]:
        """The distinct variants of the pods."""
        return [variant for _, variant in self._by_code()]

    def sum(self, ask: PodValue, num_places: int) -> Int64Array:
        """``int64[places]``: the sum of a number over the pods of each place."""
        total: Int64Array = np.zeros(num_places, dtype=np.int64)
        values = np.zeros(len(self._known_variants.values), dtype=np.int64)
        for code, variant in self._by_code():
            values[code] = ask(*variant)
        np.add.at(total, self._places, values[self._codes])
        return total

    def add_requests(self, used: Int64Array) -> None:
        """Add the requests of the pods to ``used[places, resources + 3]``; see `PodVariants`."""
        amounts = self._known_variants.requests()[self._codes]
        if np.bincount(self._places).max(initial=0) <= 1:
            used[self._places] += amounts
        else:
            np.add.at(used, self._places, amounts)

    def _by_code(self) -> Iterator[tuple[int, PodVariant]]:
        values = self._known_variants.values
        for code in sorted(set(self._codes.tolist())):
            variant = values[code]
            if variant is not None:
                yield code, variant


_NONE: Int64Array = np.empty(0, dtype=np.int64)

NO_ADDED_PODS = AddedPods(_NONE, _NONE, PodVariants(ResourceIndex()), (), _NONE)
