"""The syntax tree of an expression, after the expansion of macros.

The parser makes the nodes; the checker adds the types and the candidate overloads to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

AND, OR, CONDITIONAL = "_&&_", "_||_", "_?_:_"
EQUALS, NOT_EQUALS, IN = "_==_", "_!=_", "@in"
NOT, NEGATE, ADD = "!_", "-_", "_+_"
INDEX, OPTIONAL_INDEX = "_[_]", "_[?_]"
NOT_STRICTLY_FALSE = "@not_strictly_false"
MAP_INSERT = "cel.@mapInsert"
ACCUMULATOR = "@result"
UNUSED_VARIABLE = "#unused"


@dataclass(eq=False, slots=True)
class Node:
    """A node of the tree.

    Attributes:
        position: offset of the node in the text.
        type: the type that the checker found; None before.
    """

    position: int
    type: Any = field(default=None, init=False)


@dataclass(eq=False, slots=True)
class Literal(Node):
    """A constant."""

    value: Any


@dataclass(eq=False, slots=True)
class Ident(Node):
    """A name: a variable or a type."""

    name: str


@dataclass(eq=False, slots=True)
class Select(Node):
    """``operand.field``, ``operand.?field`` or ``has(operand.field)``."""

    operand: Node
    field_name: str
    optional: bool = False
    test_only: bool = False


@dataclass(eq=False, slots=True)
class Call(Node):
    """``target.function(args)``, or ``function(args)`` without `target`; operators too.

    ``&&`` and ``||`` have two or more arguments. `overloads` are the candidates that the checker
    found.
    """

    function: str
    target: Node | None
    args: list[Node]
    overloads: list[Any] = field(default_factory=list, init=False)


@dataclass(eq=False, slots=True)
class ListLiteral(Node):
    """``[a, ?b]``; `optional` has the indices of elements with a question mark."""

    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(eq=False, slots=True)
class Entry:
    """``key: value`` in a map, ``?key: value`` if `optional`."""

    key: Node
    value: Node
    optional: bool


@dataclass(eq=False, slots=True)
class MapLiteral(Node):
    """``{a: b}``."""

    entries: list[Entry]


@dataclass(eq=False, slots=True)
class Comprehension(Node):
    """A loop over `iter_range`, made by a macro.

    `accumulator` starts as `initial`. While `condition` is not false, it becomes `step` for each
    element. The value of the loop is `result`.
    """

    iter_range: Node
    variables: tuple[str, ...]
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node


def children(node: Node) -> list[Node]:
    """Return the nodes directly below `node`."""
    match node:
        case Select(operand=operand):
            return [operand]
        case Call(target=target, args=args):
            return [*([target] if target else []), *args]
        case ListLiteral(elements=elements):
            return elements
        case MapLiteral(entries=entries):
            return [part for entry in entries for part in (entry.key, entry.value)]
        case Comprehension() as loop:
            return [loop.iter_range, loop.initial, loop.condition, loop.step, loop.result]
    return []
