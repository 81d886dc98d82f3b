"""The type checker (``checker/checker.go`` of cel-go): types of all nodes, candidate overloads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count

from stowage.cel.checking.environment import FUNCTIONS, Declarations
from stowage.cel.checking.unification import Substitutions, most_general
from stowage.cel.signatures.functions import Overload
from stowage.cel.signatures.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Kind,
    Type,
    is_dyn,
    is_dyn_or_error,
    list_of,
    map_of,
    optional_content,
    optional_of,
    parameter,
    renamed,
)
from stowage.cel.syntax.issues import Issues
from stowage.cel.syntax.tree import (
    AND,
    OR,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
)
from stowage.cel.values.numbers import Uint

_LITERALS: Mapping[type, Type] = {
    bool: BOOL,
    int: INT,
    Uint: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}


def check(tree: Node, text: str, declarations: Declarations) -> Type:
    """Set the types of all nodes; return the type of the expression.

    Args:
        tree: The expression.
        text: Its text.
        declarations: What it may name.

    Raises:
        CelCompileError: a name is not declared, or the types do not fit.
    """
    checker = _Checker(text, declarations)
    checker.check(tree)
    checker.issues.raise_any()
    for node in checker.checked:
        node.type = checker.known.substitute(node.type, free_to_dyn=True)
    result: Type = tree.type
    return result


def qualified_name(node: Node) -> str | None:
    """The dotted name that `node` spells; None if it is another expression."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test_only and not node.optional:
        prefix = qualified_name(node.operand)
        return None if prefix is None else f"{prefix}.{node.field_name}"
    return None


class _Checker:
    def __init__(self, text: str, declarations: Declarations) -> None:
        self.issues = Issues(text)
        self._declarations = declarations
        self._scopes: list[dict[str, Type]] = []
        self._fresh = count()
        self.known = Substitutions()
        self.checked: list[Node] = []
        self._checks: dict[type, Callable[..., Type]] = {
            Literal: lambda node: _LITERALS[type(node.value)],
            Ident: self._ident,
            Select: self._select,
            Call: self._call,
            ListLiteral: self._list,
            MapLiteral: self._map,
            Comprehension: self._comprehension,
        }

    def check(self, node: Node) -> Type:
        if node.type is None:  # a macro may use one node twice
            node.type = self._checks[type(node)](node)
            self.checked.append(node)
        found: Type = node.type
        return found

    def _error(self, node: Node, message: str) -> Type:
        """Note an error; return the type of a node that has none, which fits everything."""
        self.issues.report(node.position, message)
        return ERROR

    def _declared(self, name: str) -> Type | None:
        name = name.removeprefix(".")
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return self._declarations.type_of_name(name)

    def _ident(self, node: Ident) -> Type:
        found = self._declared(node.name)
        if found is None:
            return self._undeclared(node, node.name)
        return found

    def _undeclared(self, node: Node, name: str) -> Type:
        return self._error(node, f"undeclared reference to '{name}' (in container '')")

    def _select(self, node: Select) -> Type:
        name = qualified_name(node)
        found = self._declared(name) if name else None
        if found is not None:
            return found
        found = self._field_type(node)
        return BOOL if node.test_only else found

    def _field_type(self, node: Select) -> Type:
        name = node.field_name
        operand = self.known.substitute(self.check(node.operand))
        target, was_optional = optional_content(operand)
        match target.kind:
            case Kind.MAP:
                found = target.parameters[1]
            case Kind.STRUCT:
                fields = self._declarations.structs.get(target.name, {})
                if name not in fields:
                    found = self._error(node, f"undefined field '{name}'")
                else:
                    found = fields[name]
            case Kind.PARAMETER:
                self._unify(DYN, target)
                found = DYN
            case _ if is_dyn_or_error(target):
                found = DYN
            case _:
                self._error(node, f"type '{target}' does not support field selection")
                found = DYN
        found = self.known.substitute(found)
        return optional_of(found) if was_optional or node.optional else found

    def _call(self, node: Call) -> Type:
        for arg in node.args:
            self.check(arg)
        prefix = qualified_name(node.target) if node.target else None
        if prefix is not None and f"{prefix}.{node.function}".removeprefix(".") in FUNCTIONS:
            node.function = f"{prefix}.{node.function}".removeprefix(".")
            node.target = None
        node.function = node.function if node.target else node.function.removeprefix(".")
        if node.target is not None:
            self.check(node.target)
        if node.function not in FUNCTIONS or node.function in self._declarations.without:
            return self._undeclared(node, node.function)
        if node.function in (AND, OR):
            return self._logical(node)
        return self._resolve(node)

    def _logical(self, node: Call) -> Type:
        result = BOOL
        for arg in node.args:
            if not self._unify(arg.type, BOOL):
                found = self.known.substitute(arg.type)
                result = self._error(arg, f"expected type 'bool' but found '{found}'")
        return result

    def _resolve(self, node: Call) -> Type:
        """Find the overloads that fit; several make the result dyn unless they agree."""
        args = [node.target, *node.args] if node.target else node.args
        types = [arg.type for arg in args]
        result: Type | None = None
        for candidate in FUNCTIONS[node.function]:
            if candidate.member is (node.target is None):
                continue
            found = self._fit(candidate, types)
            if found is None:
                continue
            node.overloads.append(candidate)
            if result is None:
                result = found
            elif not is_dyn(result) and found != result:
                result = DYN
        return result or self._no_overload(node, types)

    def _fit(self, candidate: Overload, types: list[Type]) -> Type | None:
        fresh = {name: self._type_variable() for name in candidate.variables}
        expected = [renamed(each, fresh) for each in candidate.arguments]
        if not self.known.unify(types, expected):
            return None
        return self.known.substitute(renamed(candidate.result, fresh))

    def _no_overload(self, node: Call, types: list[Type]) -> Type:
        shown = [str(self.known.substitute(each, free_to_dyn=True)) for each in types]
        applied = f"({', '.join(shown)})"
        if node.target is not None:
            applied = f"{shown[0]}.({', '.join(shown[1:])})"
        return self._error(
            node, f"found no matching overload for '{node.function}' applied to '{applied}'"
        )

    def _list(self, node: ListLiteral) -> Type:
        element: Type | None = None
        for index, each in enumerate(node.elements):
            element = self._join(element, self._element(each, index in node.optional))
        return list_of(element or self._type_variable())

    def _map(self, node: MapLiteral) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._join(key, self.check(entry.key))
            value = self._join(value, self._element(entry.value, entry.optional))
        if key is None or value is None:
            return map_of(self._type_variable(), self._type_variable())
        return map_of(key, value)

    def _element(self, node: Node, optional: bool) -> Type:
        found = self.check(node)
        if not optional:
            return found
        content, was_optional = optional_content(found)
        if not was_optional and not is_dyn(content):
            self._error(node, f"expected type 'optional_type({content})' but found '{content}'")
        return content

    def _join(self, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        return most_general(previous, current) if self._unify(previous, current) else DYN

    def _comprehension(self, node: Comprehension) -> Type:
        ranged = self.known.substitute(self.check(node.iter_range))
        accumulated = self.check(node.initial)
        variables = self._loop_variables(node, ranged)
        self._scopes.append({node.accumulator: accumulated})
        self._scopes.append(dict(zip(node.variables, variables, strict=True)))
        self.check(node.condition)
        self._assert_type(node.condition, BOOL)
        self.check(node.step)
        self._assert_type(node.step, accumulated)
        self._scopes.pop()
        found = self.check(node.result)
        self._scopes.pop()
        return self.known.substitute(found)

    def _loop_variables(self, node: Comprehension, ranged: Type) -> list[Type]:
        two = len(node.variables) == 2
        match ranged.kind:
            case Kind.LIST:
                return [INT, ranged.parameters[0]] if two else [ranged.parameters[0]]
            case Kind.MAP:
                return list(ranged.parameters if two else ranged.parameters[:1])
            case Kind.DYN | Kind.ERROR | Kind.PARAMETER:
                self._unify(DYN, ranged)
                return [DYN, DYN] if two else [DYN]
        found = self._error(
            node.iter_range,
            f"expression of type '{ranged}' cannot be range of a comprehension "
            "(must be list, map, or dynamic)",
        )
        return [found, found] if two else [found]

    def _assert_type(self, node: Node, expected: Type) -> None:
        if not self._unify(expected, node.type):
            found = self.known.substitute(node.type)
            self._error(node, f"expected type '{expected}' but found '{found}'")

    def _unify(self, left: Type, right: Type) -> bool:
        return self.known.unify((left,), (right,))

    def _type_variable(self) -> Type:
        return parameter(f"_var{next(self._fresh)}")
