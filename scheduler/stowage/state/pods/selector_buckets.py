"""Finding the selectors that may match a pod without judging all of them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from stowage.api.values.selectors import Operator, Selector

MAX_BUCKET_NAMESPACES = 16
"""Things for more namespaces than this are to be kept for any: a place under each costs more than
judging them in vain."""

T = TypeVar("T", bound=Hashable)
_Anchor = tuple[str, str]
_EQUALITY = (Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS)


class SelectorBuckets(Generic[T]):
    """Things that have a selector, by namespace and by one label a pod must have to match.

    Nearly every selector requires some label to equal one value. Kept under that label, it is
    looked at only for pods that have it, however many other selectors there are.
    """

    __slots__ = ("_anchors", "_buckets")

    def __init__(self) -> None:
        self._buckets: dict[tuple[str | None, _Anchor | None], dict[T, None]] = {}
        self._anchors: dict[T, _Anchor | None] = {}

    def add(self, thing: T, selector: Selector, namespaces: Collection[str | None]) -> None:
        """Keep `thing` for pods of these namespaces (None: of any) that `selector` may match."""
        if selector.matches_nothing:
            return
        anchor = self._best_anchor(selector, namespaces)
        self._anchors[thing] = anchor
        for namespace in namespaces:
            self._buckets.setdefault((namespace, anchor), {})[thing] = None

    def discard(self, thing: T, selector: Selector, namespaces: Collection[str | None]) -> None:
        """Forget `thing`, which was added with the same selector and namespaces."""
        if selector.matches_nothing:
            return
        anchor = self._anchors.pop(thing)
        for namespace in namespaces:
            bucket = self._buckets[namespace, anchor]
            del bucket[thing]
            if not bucket:
                del self._buckets[namespace, anchor]

    def candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[T]:
        """All things whose selector may match a pod; none that is left out can match it."""
        buckets = self._buckets
        for home in (namespace, None):
            yield from buckets.get((home, None), ())
            for label in labels.items():
                yield from buckets.get((home, label), ())

    def _best_anchor(
        self, selector: Selector, namespaces: Collection[str | None]
    ) -> _Anchor | None:
        """Of the labels that must equal one value, the one with the fewest things under it."""
        anchors = [
            (requirement.key, requirement.values[0])
            for requirement in selector.requirements
            if requirement.operator in _EQUALITY and len(requirement.values) == 1
        ]
        if not anchors:
            return None
        home = next(iter(namespaces), None)
        return min(anchors, key=lambda anchor: len(self._buckets.get((home, anchor), ())))
