"""Declarations of functions: signatures as text, parsed to overloads.

A signature is written ``size(string) -> int`` for a global function and
``string.size() -> int`` for a member; ``ip.isCanonical(string) -> bool`` is global too, since
``ip`` is no type. Single capital letters are type variables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from stowage.cel.signatures.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    QUANTITY,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Kind,
    Type,
    parameter,
    struct,
    variables_in,
)

Implementation = Callable[..., Any]
CostFunction = Callable[[tuple[Any, ...], Any], int]

NAMED_TYPES: dict[str, Type] = {
    "dyn": DYN,
    "any": ANY,
    "null": NULL,
    "bool": BOOL,
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "type": TYPE,
    "Quantity": QUANTITY,
    "Semver": struct("kubernetes.Semver"),
    "URL": struct("kubernetes.URL"),
    "IP": struct("net.IP"),
    "CIDR": struct("net.CIDR"),
    "Format": struct("kubernetes.NamedFormat"),
    "Authorizer": struct("kubernetes.authorization.Authorizer"),
    "PathCheck": struct("kubernetes.authorization.PathCheck"),
    "GroupCheck": struct("kubernetes.authorization.GroupCheck"),
    "ResourceCheck": struct("kubernetes.authorization.ResourceCheck"),
    "Decision": struct("kubernetes.authorization.Decision"),
}
_CONSTRUCTORS = {
    "list": Kind.LIST,
    "map": Kind.MAP,
    "type": Kind.TYPE,
    "optional_type": Kind.OPAQUE,
}
_TOKEN = re.compile(r"[A-Za-z_]+|[(),]")


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function.

    Attributes:
        function: name of the function or operator.
        member: whether it is called as ``target.function()``; the target is the first argument.
        arguments: their types.
        result: type of the result.
        implementation: computes the result from the arguments. It may raise a CelRuntimeError.
        cost: cost of a call by arguments and result, if this is the only candidate of the checker.
        variables: names of the type variables of the signature.
        needs_frame: whether `implementation` takes the frame of the evaluation as first argument,
            to charge work that the cost of cel-go does not cover.
    """

    function: str
    member: bool
    arguments: tuple[Type, ...]
    result: Type
    implementation: Implementation | None = None
    cost: CostFunction | None = None
    needs_frame: bool = False
    variables: tuple[str, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        found = frozenset().union(*map(variables_in, (*self.arguments, self.result)))
        object.__setattr__(self, "variables", tuple(sorted(found)))


def overload(
    signature: str,
    implementation: Implementation | None = None,
    cost: CostFunction | None = None,
    needs_frame: bool = False,
) -> Overload:
    """Make an overload from its signature."""
    head, _, result = signature.partition(" -> ")
    opening = _arguments_start(head)
    name, arguments = head[:opening], _types(head[opening + 1 : -1])
    target, dot, function = _split_member(name)
    member = bool(dot) and _is_type(target)
    if member:
        return Overload(
            function,
            True,
            (parse_type(target), *arguments),
            parse_type(result),
            implementation,
            cost,
            needs_frame,
        )
    return Overload(
        name, False, tuple(arguments), parse_type(result), implementation, cost, needs_frame
    )


def overloads(
    signatures: str,
    implementation: Implementation | None = None,
    cost: CostFunction | None = None,
) -> list[Overload]:
    """Make overloads with one implementation from signatures, one a line."""
    lines = (line.strip() for line in signatures.strip().splitlines())
    return [overload(line, implementation, cost) for line in lines if line]


def by_function(declared: Iterable[Overload]) -> dict[str, list[Overload]]:
    """Group overloads by the name of their function, in order."""
    grouped: dict[str, list[Overload]] = {}
    for each in declared:
        grouped.setdefault(each.function, []).append(each)
    return grouped


def parse_type(text: str) -> Type:
    """Parse a type like ``map(K, list(int))``."""
    tokens = _TOKEN.findall(text)
    found, rest = _parse(tokens)
    if rest:
        raise ValueError(f"not a type: {text}")
    return found


def _parse(tokens: list[str]) -> tuple[Type, list[str]]:
    name, rest = tokens[0], tokens[1:]
    if rest[:1] != ["("]:
        return NAMED_TYPES[name] if len(name) > 1 else parameter(name), rest
    parts: list[Type] = []
    while rest[0] != ")":
        part, rest = _parse(rest[1:])
        parts.append(part)
    return Type(_CONSTRUCTORS[name], name, tuple(parts)), rest[1:]


def _types(text: str) -> list[Type]:
    if not text:
        return []
    wrapped, _ = _parse(_TOKEN.findall(f"map({text})"))
    return list(wrapped.parameters)


def _arguments_start(head: str) -> int:
    depth = 0
    for index in range(len(head) - 1, -1, -1):
        depth += (head[index] == ")") - (head[index] == "(")
        if depth == 0:
            return index
    raise ValueError(f"not a signature: {head}")


def _split_member(name: str) -> tuple[str, str, str]:
    return name.rpartition(".") if "." in name else ("", "", name)


def _is_type(text: str) -> bool:
    return len(text) == 1 or text in NAMED_TYPES or "(" in text
