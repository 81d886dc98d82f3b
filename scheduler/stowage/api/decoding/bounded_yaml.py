"""YAML from others: aliases do not expand without bound, and deep nesting is an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.cyaml import CParser  # type: ignore[attr-defined]  # not in the stubs
from yaml.resolver import Resolver

MAX_VALUES = 500_000
"""Values that aliases may add to those that are written, of which there may be any number."""

INVALID = (yaml.YAMLError, ValueError, RecursionError)
"""What `documents` raises: no YAML, an invalid scalar such as the date 2001-99-99, too deep."""

_TOO_MANY = 2**62


class Document(NamedTuple):
    """A document.

    Attributes:
        builtins: The document as mappings, lists and scalars.
        root: The same with line numbers, for `document_lines.line_of`.
    """

    builtins: Any
    root: yaml.Node


class BoundedLoader(Composer, CParser, SafeConstructor, Resolver):
    """Reads plain YAML.

    libyaml reads the text, three times as fast as PyYAML. Its own composer would overflow the stack
    of a document that is nested deeply; the one in Python raises RecursionError.
    """

    def __init__(self, text: str | bytes) -> None:
        CParser.__init__(self, text)
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)


class StrictLoader(BoundedLoader):
    """Strict YAML, as Kubernetes reads configurations: a duplicate field is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping; see `SafeConstructor`."""
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = str(self.construct_object(key_node))
            if key in seen:
                line = key_node.start_mark.line + 1
                raise yaml.YAMLError(f"{key} is set twice, again in line {line}")
            seen.add(key)
        return super().construct_mapping(node, deep)


# Go's YAML and JSON read 1e3 and 1.5e+3 as numbers; YAML 1.1 wants both point and sign.
StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)[eE][-+]?[0-9]+\Z"),
    list("-+.0123456789"),
)


def documents(text: str | bytes, kind: type[BoundedLoader] = BoundedLoader) -> Iterator[Document]:
    """The documents of a text.

    Args:
        text: YAML or JSON.
        kind: The loader.

    Raises:
        yaml.YAMLError: The text is not YAML, or its aliases expand to too many values.
        ValueError: A scalar is invalid.
        RecursionError: A document is nested too deeply.
    """
    loader = kind(text)
    num_written = num_expanded = 0
    try:
        while loader.check_node():
            node: Any = loader.get_node()
            sizes: dict[int, int] = {}
            num_expanded += _expanded_size(node, sizes)
            num_written += len(sizes)
            if num_expanded - num_written > MAX_VALUES:
                raise yaml.YAMLError(f"its aliases expand to more than {MAX_VALUES:,} values")
            yield Document(loader.construct_document(node), node)
    finally:
        loader.dispose()


def _expanded_size(node: yaml.Node, known: dict[int, int]) -> int:
    """Number of values after each alias is replaced by its anchor's value.

    `known` gets the size of each value that is written in the document.
    """
    size = known.get(id(node))
    if size is None:
        known[id(node)] = _TOO_MANY  # reached again only if the node contains itself
        parts: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            parts = [each for pair in node.value for each in pair]
        elif isinstance(node, yaml.SequenceNode):
            parts = node.value
        size = 1 + sum(_expanded_size(each, known) for each in parts)
        known[id(node)] = size = min(_TOO_MANY, size)
    return size
