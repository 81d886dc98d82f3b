"""Which objects select a set of labels, without asking each of them."""

from typing import Any, NamedTuple

from simcluster.store.selectors import match_label_selector

Json = dict[str, Any]


class _Entry(NamedTuple):
    selector: Json
    anchor: tuple[str, str] | None


class SelectorIndex:
    """Names of objects by the labels they select, per namespace.

    A selector is filed under one of its ``matchLabels``; labels meet only the selectors filed under
    one of them, and the few without any ``matchLabels``. An empty selector selects nothing here
    unless ``empty_selects``.
    """

    def __init__(self, *, empty_selects: bool = False) -> None:
        self._empty_selects = empty_selects
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._names: dict[tuple[str, tuple[str, str] | None], dict[str, None]] = {}

    def put(self, namespace: str, name: str, selector: Json | None) -> None:
        """Add an object, or replace its selector."""
        self.discard(namespace, name)
        if not selector and not (self._empty_selects and selector is not None):
            return
        anchor = min((selector.get("matchLabels") or {}).items(), default=None)
        self._entries[namespace, name] = _Entry(selector, anchor)
        self._names.setdefault((namespace, anchor), {})[name] = None

    def discard(self, namespace: str, name: str) -> None:
        """Remove an object, if it is there."""
        entry = self._entries.pop((namespace, name), None)
        if entry is None:
            return
        place = (namespace, entry.anchor)
        names = self._names[place]
        del names[name]
        if not names:
            del self._names[place]

    def selecting(self, namespace: str, labels: dict[str, str]) -> list[str]:
        """The names of a namespace's objects that select ``labels``."""
        found: list[str] = []
        for anchor in (None, *labels.items()):
            found += [
                name
                for name in self._names.get((namespace, anchor), ())
                if match_label_selector(self._entries[namespace, name].selector, labels)
            ]
        return found
