"""What is known of the sizes of the nodes of one expression while its cost is estimated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from stowage.cel.estimation.sizes import UNKNOWN, Size, size_of_literal, size_of_type
from stowage.cel.signatures.types import Kind
from stowage.cel.syntax.tree import Ident, Node

Path = tuple[str, ...]
DeclaredSize = Callable[[Path], Size | None]
"""The size of what a path from a variable leads to: names of fields, ``@items``, ``@keys`` and
``@values``. None if it is not declared."""

ITEMS, KEYS, VALUES, INDICES = "@items", "@keys", "@values", "@indices"


class Entries(NamedTuple):
    """The sizes of the keys and values of a map, or of the items of a list."""

    is_list: bool
    key: Size
    value: Size

    def or_(self, other: Entries) -> Entries:
        """The entries of one of the two."""
        return Entries(self.is_list, self.key.or_(other.key), self.value.or_(other.value))


class _Variable(NamedTuple):
    path: Path
    size: Size | None
    entries: Entries | None = None


class TrackedSizes:
    """Sizes of nodes, of their entries, and the paths that lead to them.

    Args:
        declared: The sizes of the declared variables.
    """

    def __init__(self, declared: DeclaredSize) -> None:
        self._declared = declared
        self._sizes: dict[Node, Size] = {}
        self._entries: dict[Node, Entries] = {}
        self._paths: dict[Node, Path] = {}
        self._variables: defaultdict[str, list[_Variable]] = defaultdict(list)

    def size(self, node: Node) -> Size | None:
        """The size of a node; None if it is not known."""
        if node in self._sizes:
            return self._sizes[node]
        if (literal := size_of_literal(node)) is not None:
            return literal
        if (declared := self._declared(self.path(node))) is not None:
            self._sizes[node] = declared
            return declared
        if (of_type := size_of_type(node.type)) is not None:
            return of_type
        variable = self._variable(node)
        return None if variable is None else variable.size

    def size_or_unknown(self, node: Node) -> Size:
        """The size of a node; any size if it is not known."""
        found = self.size(node)
        return UNKNOWN if found is None else found

    def size_of_items(self, node: Node) -> Size:
        """The size of the items of a list by its declaration."""
        path = self.path(node)
        found = self._declared((*path, ITEMS)) if path else None
        return UNKNOWN if found is None else found

    def entries(self, node: Node) -> Entries | None:
        """The sizes of the entries of a node; None if they are not known."""
        if node in self._entries:
            return self._entries[node]
        variable = self._variable(node)
        return None if variable is None else variable.entries

    def path(self, node: Node) -> Path:
        """The path to a node; empty if no declared variable leads to it."""
        variable = self._variable(node)
        return self._paths.get(node, ()) if variable is None else variable.path

    def keep(self, node: Node, size: Size | None, entries: Entries | None = None) -> None:
        """Remember the sizes of a node, as far as they are known."""
        if size is not None:
            self._sizes[node] = size
        if entries is not None:
            self._entries[node] = entries

    def copy(self, node: Node, source: Node) -> None:
        """Give a node the sizes of another one."""
        self.keep(node, self.size(source), self.entries(source))

    def lead(self, node: Node, path: Path) -> None:
        """Remember the path to a node."""
        self._paths[node] = path

    @contextmanager
    def bound(self, name: str, node: Node) -> Iterator[None]:
        """Let a variable have the value of a node."""
        with self._declare(name, _Variable(self.path(node), self.size(node), self.entries(node))):
            yield

    @contextmanager
    def iterated(self, names: tuple[str, ...], node: Node) -> Iterator[None]:
        """Let one or two variables have the entries of a node in turn."""
        entries = self.entries(node)
        is_list = entries.is_list if entries else node.type.kind is Kind.LIST
        key = _Variable(
            (*self.path(node), INDICES if is_list else KEYS), entries.key if entries else None
        )
        value = _Variable(
            (*self.path(node), ITEMS if is_list else VALUES), entries.value if entries else None
        )
        if len(names) == 1:
            with self._declare(names[0], value if is_list else key):
                yield
        else:
            with self._declare(names[0], key), self._declare(names[1], value):
                yield

    @contextmanager
    def _declare(self, name: str, variable: _Variable) -> Iterator[None]:
        self._variables[name].append(variable)
        yield
        self._variables[name].pop()

    def _variable(self, node: Node) -> _Variable | None:
        """The local variable that a node names."""
        declared = self._variables[node.name] if isinstance(node, Ident) else ()
        return declared[-1] if declared else None
