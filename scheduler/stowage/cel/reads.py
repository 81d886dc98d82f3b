"""Which attributes of a device an expression can read, found without evaluating it.

Devices that agree in those, and in all that an expression may read besides (see `AttributeRead`),
get the same result, the same error and the same cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stowage.cel.checking.checker import qualified_name
from stowage.cel.syntax import tree
from stowage.cel.syntax.tree import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    Node,
    Select,
    children,
)

_DEVICE = "device"
#: Expanded macros share nodes, so a tree may hold more paths than can be walked.
_MAX_VISITS = 4096
_INDICES = (tree.INDEX, tree.OPTIONAL_INDEX)
_COMPARISONS = (tree.EQUALS, tree.NOT_EQUALS)

#: The constant keys of a selection that begins at the device: ``("attributes", domain, name)``.
_Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttributeRead:
    """An attribute that an expression can read, besides the driver, all capacities and versions.

    Attributes:
        domain: Its domain.
        name: Its name in the domain.
        compared: The texts that it is compared with, if that is all that is done with it: of
            another text, only the length counts. None if its value counts.
    """

    domain: str
    name: str
    compared: frozenset[str] | None = None


def attribute_reads(root: Node) -> tuple[AttributeRead, ...] | None:
    """The attributes that a checked tree can read; None if it reads a domain or device as a whole.

    The driver, ``allowMultipleAllocations``, capacities and attributes of type version are not
    listed: every expression is taken to read them.
    """
    reading = _Reading()
    reading.visit(root, {_DEVICE: ()})
    if reading.reads_whole:
        return None
    return tuple(
        AttributeRead(domain, name, None if compared is None else frozenset(compared))
        for (domain, name), compared in sorted(reading.found.items())
    )


class _Reading:
    """What was found so far.

    Attributes:
        found: (domain, name) -> the texts it is compared with; None if its value counts.
        reads_whole: Whether more than single attributes is read.
    """

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], set[str] | None] = {}
        self.reads_whole = False
        self._visits = 0

    def visit(self, node: Node, names: Mapping[str, _Keys]) -> None:
        """Note what a node reads; `names` are variables that stand for selections."""
        self._visits += 1
        if self.reads_whole or self._visits > _MAX_VISITS:
            self.reads_whole = True
            return
        keys = _keys(node, names)
        if keys is not None:
            self._note(keys)
        elif isinstance(node, Comprehension):
            self._visit_loop(node, names)
        elif not self._is_comparison(node, names):
            for each in children(node):
                self.visit(each, names)

    def _note(self, keys: _Keys) -> None:
        if not keys or (keys[0] == "attributes" and len(keys) < 3):
            self.reads_whole = True
        elif keys[0] == "attributes":
            self.found[keys[1], keys[2]] = None

    def _is_comparison(self, node: Node, names: Mapping[str, _Keys]) -> bool:
        """Note an attribute that is compared with constant texts."""
        compared = _comparison(node)
        keys = None if compared is None else _keys(compared[0], names)
        if compared is None or keys is None or len(keys) != 3 or keys[0] != "attributes":
            return False
        known = self.found.setdefault((keys[1], keys[2]), set())
        if known is not None:
            known.update(compared[1])
        return True

    def _visit_loop(self, loop: Comprehension, names: Mapping[str, _Keys]) -> None:
        inner = {name: keys for name, keys in names.items() if name not in loop.variables}
        inner.pop(loop.accumulator, None)
        bound = _keys(loop.initial, names)
        if loop.variables == (tree.UNUSED_VARIABLE,) and bound is not None:
            # A variable that stands for a selection; one that selects a value may fail here.
            if len(bound) > 2:
                self._note(bound)
            self.visit(loop.result, {**inner, loop.accumulator: bound})
            return
        self.visit(loop.iter_range, names)
        self.visit(loop.initial, names)
        for each in (loop.condition, loop.step, loop.result):
            self.visit(each, inner)


def _keys(node: Node, names: Mapping[str, _Keys]) -> _Keys | None:
    """The constant keys of a selection that begins at the device; None for another node."""
    if isinstance(node, Ident):
        return names.get(node.name.removeprefix("."))
    if isinstance(node, Select):
        operand, key = node.operand, node.field_name
        if operand.type is None:  # the checker took the whole for a name
            return names.get((qualified_name(node) or "").removeprefix("."))
    elif isinstance(node, Call) and node.function in _INDICES:
        operand, index = node.args
        if not isinstance(index, Literal) or type(index.value) is not str:
            return None
        key = index.value
    else:
        return None
    before = _keys(operand, names)
    return None if before is None else (*before, key)


def _comparison(node: Node) -> tuple[Node, list[str]] | None:
    """What is compared with constant texts, and these."""
    if not isinstance(node, Call):
        return None
    match node.function, node.args:
        case _, [left, Literal(value=str() as text)] if node.function in _COMPARISONS:
            return left, [text]
        case _, [Literal(value=str() as text), right] if node.function in _COMPARISONS:
            return right, [text]
        case tree.IN, [left, ListLiteral(elements=elements, optional=optional)] if not optional:
            texts = [each.value for each in elements if isinstance(each, Literal)]
            if len(texts) == len(elements) and all(type(text) is str for text in texts):
                return left, texts
    return None
