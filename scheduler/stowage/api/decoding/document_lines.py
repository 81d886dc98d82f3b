"""The lines of fields in a YAML document."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def line_of(root: yaml.Node, path: str) -> int:
    """The line of a field, from 1; of its closest parent if the document does not have it.

    Args:
        root: The document.
        path: The field, such as ``profiles[0].plugins.score.enabled[0].name``.
    """
    node, line = root, _first_line(root)
    for step in _STEP.finditer(path):
        index, name = step.groups()
        found = _item(node, int(index)) if index else _value(node, name)
        if found is None:
            break
        node, line = found
    return line


def _item(node: yaml.Node, index: int) -> tuple[yaml.Node, int] | None:
    items = node.value if isinstance(node, yaml.SequenceNode) else ()
    return (items[index], _first_line(items[index])) if index < len(items) else None


def _value(node: yaml.Node, name: str) -> tuple[yaml.Node, int] | None:
    for key, value in _pairs(node):
        if key.value == name:
            return value, _first_line(key)
    return None


def _pairs(node: yaml.Node) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        yield from node.value


def _first_line(node: yaml.Node) -> int:
    line: int = node.start_mark.line
    return line + 1
