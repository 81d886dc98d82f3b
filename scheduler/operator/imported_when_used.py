"""Modules that are imported when something in them is used first.

A library may import much that we never touch; `kubernetes` imports its whole synchronous half with
its first name, at more CPU time than everything we take from it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType


@contextmanager
def imported_when_used(names: Collection[str]) -> Iterator[None]:
    """Have these modules, if the block imports them, executed when an attribute is asked of them.

    ``from module import name`` asks for one. A module that was imported before stays as it is, and
    a name that there is none of is as missing as ever.

    Args:
        names: Full names.
    """
    finder = _LazyFinder(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _LazyFinder(MetaPathFinder):
    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The module's own spec with a lazy loader, if it is one of the named."""
        if fullname not in self._names:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec
