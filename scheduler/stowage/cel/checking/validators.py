"""Checks of a typed tree beyond its types (``cel/validator.go``, ``ext/formatting.go`` of cel-go).

Constants that are converted to durations or timestamps, regular expressions and formats must be
valid, and the elements of a list or map literal must have one type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from stowage.cel.errors import CelRuntimeError
from stowage.cel.functions.formatting import CLAUSE_ERRORS, Clause, clauses_of
from stowage.cel.functions.regexes import ConstantPatterns
from stowage.cel.signatures.types import Kind, Type, is_equivalent
from stowage.cel.syntax.issues import Issues
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
    issues = Issues(text)
    checks = {**_CONSTANT_CHECKS, "matches": ConstantPatterns().compiled}
    for node, in_format in _walk(tree):
        match node:
            case Call(function="format", target=Literal(value=str() as pattern)):
                _validate_format(node, pattern, issues)
            case Call(function=function, args=[Literal(value=str() as constant), *_]):
                if function in checks:
                    _validate_constant(node, checks[function], constant, issues)
            case ListLiteral(elements=elements, optional=optional) if not in_format:
                _validate_one_type(
                    [(each, i in optional) for i, each in enumerate(elements)], issues
                )
            case MapLiteral(entries=entries) if not in_format:
                _validate_one_type([(entry.key, False) for entry in entries], issues)
                _validate_one_type([(entry.value, entry.optional) for entry in entries], issues)
    issues.raise_any()


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


def _validate_one_type(nodes: Iterable[tuple[Node, bool]], issues: Issues) -> None:
    first: Type | None = None
    for node, optional in nodes:
        found = _content(node, optional)
        first = first or found
        if not is_equivalent(first, found):
            issues.report(node.position, f"expected type '{first}' but found '{found}'")
            return


def _validate_constant(
    node: Call, check: Callable[[str], object], constant: str, issues: Issues
) -> None:
    try:
        check(constant)
    except CelRuntimeError:
        issues.report(node.args[0].position, f"invalid {node.function} argument")


def _validate_format(node: Call, pattern: str, issues: Issues) -> None:
    if len(node.args) != 1 or not isinstance(node.args[0], ListLiteral):
        return
    elements = node.args[0].elements
    try:
        clauses = [part for part in clauses_of(pattern) if isinstance(part, Clause)]
    except CelRuntimeError as error:
        issues.report(node.position, str(error))
        return
    for index, clause in enumerate(clauses):
        if index >= len(elements):
            issues.report(node.position, f"index {index} out of range")
            return
        refused = _refused(clause, elements[index])
        if refused is not None:
            message = f"{CLAUSE_ERRORS[clause.verb]}, was given {refused.type.name}"
            issues.report(refused.position, f"error during formatting: {message}")
            return
    if len(elements) > len(clauses):
        counts = f"(expected {len(clauses)}, got {len(elements)})"
        issues.report(node.position, f"too many arguments supplied to string.format {counts}")


def _refused(clause: Clause, node: Node) -> Node | None:
    """The node that `clause` cannot format: `node`, or one in this literal."""
    found: Type = node.type
    if found.kind is not Kind.DYN and found.name not in _CLAUSE_TYPES[clause.verb]:
        return node
    if clause.verb != "s" or not isinstance(node, ListLiteral | MapLiteral):
        return None
    return next(filter(None, (_refused(clause, child) for child in children(node))), None)
