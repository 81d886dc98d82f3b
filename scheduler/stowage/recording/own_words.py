"""The words that mean something to the scheduler: what its code compares names to, and its texts.

They are read from the source of the rooms that decide, and of the installed plugins, so no list has
to be kept up to date.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
"""A word of a text; every name of the API is one, or several with ``/`` and ``:`` between them."""

_DECIDING = ("api", "cel", "engine", "framework", "plugins", "queue", "state")
_PLUGINS = "stowage.plugins"
"""The entry points of plugins."""


@cache
def own_words() -> frozenset[str]:
    """The words in all texts and the names of all classes, without docstrings and comments."""
    return frozenset(
        word
        for source in (*_own_sources(), *_plugin_sources())
        for text in _texts(ast.parse(source))
        for word in WORD.findall(text)
    )


def _own_sources() -> Iterator[str]:
    for room in _DECIDING:
        yield from _sources(resources.files("stowage") / room)


def _sources(folder: resources.abc.Traversable) -> Iterator[str]:
    for found in folder.iterdir():
        if found.is_dir():
            yield from _sources(found)
        elif found.name.endswith(".py"):
            yield found.read_text(encoding="utf-8")


def _plugin_sources() -> Iterator[str]:
    """The modules that installed packages name for their plugins."""
    for module in sorted({point.module for point in entry_points(group=_PLUGINS)}):
        spec = find_spec(module)
        if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
            yield Path(spec.origin).read_text(encoding="utf-8")


def _texts(tree: ast.Module) -> Iterator[str]:
    nodes = list(ast.walk(tree))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Constant) and id(node) not in docstrings:
            yield from (node.value,) if isinstance(node.value, str) else ()
