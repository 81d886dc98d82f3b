"""An index of selectors: finds those that may match a pod without evaluating all."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from stowage.api.values.selectors import Operator, Requirement, Selector

MAX_BUCKET_NAMESPACES = 16
"""Items for more namespaces than this are listed under all: one entry per namespace would cost more
than evaluating them in vain."""

T = TypeVar("T", bound=Hashable)
_Anchor = tuple[str, str | None]
"""A label that a matching pod must have; with None, whatever its value is."""
_EQUALITY = (Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS)
_PRESENCE = (*_EQUALITY, Operator.EXISTS, Operator.GT, Operator.LT)


class SelectorBuckets(Generic[T]):
    """Items with selectors, by namespace and by one label that a matching pod must have.

    Nearly every selector requires a label, mostly with one value. Listed under that label, it is
    evaluated only for pods that have the label, however many other selectors there are.
    """

    __slots__ = ("_anchors", "_buckets")

    def __init__(self) -> None:
        self._buckets: dict[tuple[str | None, _Anchor | None], dict[T, None]] = {}
        self._anchors: dict[T, _Anchor | None] = {}

    def add(self, thing: T, selector: Selector, namespaces: Collection[str | None]) -> None:
        """Add an item for pods of these namespaces (None: of all) that `selector` may match."""
        if selector.matches_nothing:
            return
        anchor = self._best_anchor(selector, namespaces)
        self._anchors[thing] = anchor
        for namespace in namespaces:
            self._buckets.setdefault((namespace, anchor), {})[thing] = None

    def discard(self, thing: T, selector: Selector, namespaces: Collection[str | None]) -> None:
        """Remove an item that was added with the same selector and namespaces."""
        if selector.matches_nothing:
            return
        anchor = self._anchors.pop(thing)
        for namespace in namespaces:
            bucket = self._buckets[namespace, anchor]
            del bucket[thing]
            if not bucket:
                del self._buckets[namespace, anchor]

    def candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[T]:
        """A superset of the items whose selectors match a pod."""
        buckets = self._buckets
        for home in (namespace, None):
            yield from buckets.get((home, None), ())
            for label in labels.items():
                yield from buckets.get((home, label), ())
                yield from buckets.get((home, (label[0], None)), ())

    def _best_anchor(
        self, selector: Selector, namespaces: Collection[str | None]
    ) -> _Anchor | None:
        """Of the labels that a pod must have, the one with the fewest items."""
        anchors = [
            _anchor(requirement)
            for requirement in selector.requirements
            if requirement.operator in _PRESENCE
        ]
        if len(anchors) < 2:
            return anchors[0] if anchors else None
        home = next(iter(namespaces), None)
        return min(anchors, key=lambda anchor: len(self._buckets.get((home, anchor), ())))


def _anchor(requirement: Requirement) -> _Anchor:
    has_one_value = requirement.operator in _EQUALITY and len(requirement.values) == 1
    return requirement.key, requirement.values[0] if has_one_value else None
