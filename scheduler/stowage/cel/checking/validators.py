"""Checks of a typed tree beyond its types (``cel/validator.go``, ``ext/formatting.go`` of cel-go).

Constants that are converted to durations or timestamps, regular expressions and formats must be
valid, and the elements of a list or map literal must have one type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from stowage.cel.errors import CelRuntimeError
from stowage.cel.functions.formatting import Clause, clauses_of
from stowage.cel.functions.regexes import ConstantPatterns
from stowage.cel.signatures.types import Kind, Type, is_equivalent
from stowage.cel.syntax.lexer import located
from stowage.cel.syntax.tree import Call, ListLiteral, Literal, MapLiteral, Node, children
from stowage.cel.values.times import parse_duration, parse_timestamp

_CONSTANT_CHECKS: Mapping[str, Callable[[str], object]] = {
    "duration": parse_duration,
    "timestamp": parse_timestamp,
}
_CLAUSE_TYPES = {
    "d": {"int", "uint"},
    "f": {"double", "string"},
    "e": {"double", "string"},
    "b": {"int", "uint", "bool"},
    "x": {"int", "uint", "string", "bytes"},
    "X": {"int", "uint", "string", "bytes"},
    "o": {"int", "uint"},
    "s": {
        "list",
        "map",
        "int",
        "uint",
        "double",
        "bool",
        "string",
        "bytes",
        "google.protobuf.Timestamp",
        "google.protobuf.Duration",
        "type",
        "null_type",
    },
}


def validate(tree: Node, text: str) -> None:
    """Check all nodes of a typed tree.

    Raises:
        CelCompileError: a node is not valid.
    """
    checks = {**_CONSTANT_CHECKS, "matches": ConstantPatterns().compiled}
    for node, in_format in _walk(tree):
        match node:
            case Call(function="format", target=Literal(value=str() as pattern)):
                _validate_format(node, pattern, text)
            case Call(function=function, args=[Literal(value=str() as constant), *_]):
                if function in checks:
                    _validate_constant(node, checks[function], constant, text)
            case ListLiteral(elements=elements, optional=optional) if not in_format:
                types = (_content(each, i in optional) for i, each in enumerate(elements))
                _validate_one_type(node, types, text)
            case MapLiteral(entries=entries) if not in_format:
                _validate_one_type(node, (entry.key.type for entry in entries), text)
                values = (_content(entry.value, entry.optional) for entry in entries)
                _validate_one_type(node, values, text)


def _walk(tree: Node) -> Iterator[tuple[Node, bool]]:
    """All nodes once, and whether a node is in the literals that a format call takes."""
    seen: set[int] = set()
    pending = [(tree, False)]
    while pending:
        node, in_format = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node, in_format
        literal = isinstance(node, ListLiteral | MapLiteral)
        below = (in_format and literal) or (isinstance(node, Call) and node.function == "format")
        pending += [(child, below) for child in children(node)]


def _content(node: Node, optional: bool) -> Type:
    found: Type = node.type
    return found.parameters[0] if optional and found.parameters else found


def _validate_one_type(node: Node, types: Iterable[Type], text: str) -> None:
    first: Type | None = None
    for each in types:
        first = first or each
        if not is_equivalent(first, each):
            raise located(text, node.position, f"expected type '{first}' but found '{each}'")


def _validate_constant(
    node: Call, check: Callable[[str], object], constant: str, text: str
) -> None:
    try:
        check(constant)
    except CelRuntimeError:
        message = f"invalid {node.function} argument"
        raise located(text, node.args[0].position, message) from None


def _validate_format(node: Call, pattern: str, text: str) -> None:
    if len(node.args) != 1 or not isinstance(node.args[0], ListLiteral):
        return
    elements = node.args[0].elements
    try:
        clauses = [part for part in clauses_of(pattern) if isinstance(part, Clause)]
    except CelRuntimeError as error:
        raise located(text, node.position, str(error)) from None
    if len(clauses) != len(elements):
        message = f"format takes {len(clauses)} arguments, got {len(elements)}"
        raise located(text, node.position, message)
    for clause, element in zip(clauses, elements, strict=True):
        if not _accepts(clause, element):
            message = f"clause %{clause.verb} cannot format {element.type}"
            raise located(text, element.position, message)


def _accepts(clause: Clause, node: Node) -> bool:
    found: Type = node.type
    if found.kind is Kind.DYN:
        return True
    if found.name not in _CLAUSE_TYPES[clause.verb]:
        return False
    literal = clause.verb == "s" and isinstance(node, ListLiteral | MapLiteral)
    return not literal or all(_accepts(clause, child) for child in children(node))
