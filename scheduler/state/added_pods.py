"""Pods that come to some nodes, as arrays: asked once per sort of pod, summed up per node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from scheduler.state.arrays import BoolArray, Int64Array
from scheduler.state.pod_class import PodClass
from scheduler.state.pod_info import PodInfo
from scheduler.state.ranked_pods import PodSort

PodValue = Callable[[PodClass, bool], int]
"""A number for a pod of this class that is (or is not) being deleted."""


class AddedPods:
    """Pods by the place of their node in a view.

    Args:
        places: ``int64[pods]``.
        codes: ``int64[pods]``, which sort each pod is of.
        sorts: The sorts of pods there are.
        known: Pods, these among others.
        index: ``int64[pods]``, where in `known` each pod is.

    Attributes:
        places: As given.
        sorts: As given; there may be more than those of these pods.
        codes: As given.
    """

    __slots__ = ("_index", "_known", "codes", "places", "sorts")

    def __init__(
        self,
        places: Int64Array,
        codes: Int64Array,
        sorts: Sequence[PodSort],
        known: Sequence[PodInfo],
        index: Int64Array,
    ) -> None:
        self.places = places
        self.sorts = sorts
        self.codes = codes
        self._known = known
        self._index = index

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, PodInfo]]) -> AddedPods:
        """From pairs of a place and a pod."""
        places, pods, codes = [], [], []
        sorts: dict[PodSort, int] = {}
        for place, pod in pairs:
            places.append(place)
            pods.append(pod)
            codes.append(sorts.setdefault((pod.pod_class, pod.terminating), len(sorts)))
        numbers = np.array((places, codes), dtype=np.int64)
        return cls(numbers[0], numbers[1], list(sorts), pods, np.arange(len(pods)))

    def __len__(self) -> int:
        return len(self.places)

    def moved(self, places: Int64Array) -> AddedPods:
        """The same pods at other ``int64[pods]`` places; those at negative ones are left out."""
        kept = np.flatnonzero(places >= 0)
        return AddedPods(places[kept], self.codes[kept], self.sorts, self._known, self._index[kept])

    def at(self, positions: Int64Array, num_places: int) -> AddedPods:
        """Those at some of the places there are now, by their index in `positions`."""
        index: Int64Array = np.full(num_places, -1, dtype=np.int64)
        index[positions] = np.arange(len(positions))
        return self.moved(index[self.places])

    def present(self, num_places: int) -> BoolArray:
        """``bool[places]``: where there are any."""
        present: BoolArray = np.zeros(num_places, dtype=np.bool_)
        present[self.places] = True
        return present

    def on(self, place: int) -> list[PodInfo]:
        """The pods at one place."""
        return [self._known[index] for index in self._index[self.places == place].tolist()]

    def with_volumes(self) -> Iterator[tuple[int, PodInfo]]:
        """(place, pod) of the pods with volumes."""
        for place, index in zip(self.places.tolist(), self._index.tolist(), strict=True):
            if self._known[index].volumes:
                yield place, self._known[index]

    def sum(self, ask: PodValue, num_places: int) -> Int64Array:
        """``int64[places]``: the sum of a number per pod."""
        total: Int64Array = np.zeros(num_places, dtype=np.int64)
        values = np.array([ask(*sort) for sort in self.sorts], dtype=np.int64)
        np.add.at(total, self.places, values[self.codes])
        return total


NOBODY = AddedPods.of(())
