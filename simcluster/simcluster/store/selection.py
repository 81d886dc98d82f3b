"""The objects that a list or watch selects, by namespace, labels and fields."""

from collections.abc import Iterable

from simcluster.kinds.resources import Resource
from simcluster.store.selectors import field_test, label_test
from simcluster.store.store import Change, ChangeType, Stored


class Selection:
    """The objects of one resource that a request selects.

    Args:
        namespace: ``None`` for all namespaces.
        label_selector: selector text; empty selects everything.
        field_selector: selector text; empty selects everything.

    Raises:
        ApiError: 400, a selector cannot be parsed.
    """

    def __init__(
        self,
        resource: Resource,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> None:
        self.namespace = namespace if resource.namespaced else None
        self._labels = label_test(label_selector)
        self._fields = field_test(field_selector, resource)
        self.is_selective = self._labels is not None or self._fields is not None

    def matches(self, stored: Stored) -> bool:
        """Whether an object is selected; does not decode its dict tree."""
        if self.namespace is not None and stored.namespace != self.namespace:
            return False
        if self._labels is not None and not self._labels(stored.labels):
            return False
        return self._fields is None or self._fields(stored)

    def select(self, items: Iterable[Stored]) -> list[Stored]:
        """The selected ones of ``items``, in their order."""
        if self.namespace is None and not self.is_selective:
            return list(items)
        return [stored for stored in items if self.matches(stored)]

    def view(self, change: Change) -> tuple[ChangeType, Stored] | None:
        """The event that a change causes in this selection; ``None`` for none.

        An object that enters is ADDED; one that leaves is DELETED in its last matching state under
        the change's revision.
        """
        if change.type == "DELETED":
            return ("DELETED", change.current) if self.matches(change.current) else None
        is_selected = self.matches(change.current)
        if not self.is_selective:
            return (change.type, change.current) if is_selected else None
        was_selected = change.previous is not None and self.matches(change.previous)
        if is_selected:
            return "MODIFIED" if was_selected else "ADDED", change.current
        return ("DELETED", change.departed()) if was_selected else None
