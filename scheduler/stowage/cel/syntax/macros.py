"""Macros: calls that are written as loops, presence tests or bindings in the tree.

The expansions are those of cel-go (``parser/macro.go``, ``ext/comprehensions.go``,
``ext/bindings.go``, ``ext/lists.go``, ``cel/library.go``); the cost of an evaluation depends on
them.
"""

from __future__ import annotations

from collections.abc import Callable

from stowage.cel.errors import CelMacroError
from stowage.cel.syntax.tree import (
    ACCUMULATOR,
    ADD,
    AND,
    CONDITIONAL,
    EQUALS,
    MAP_INSERT,
    NOT,
    NOT_STRICTLY_FALSE,
    OR,
    UNUSED_VARIABLE,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
)

_SORT_INPUT = "@__sortBy_input__"
_ACCUMULATOR_NAMES = (ACCUMULATOR, "__result__")
_NO_SIMPLE_NAME = "argument must be a simple name"
_NO_IDENTIFIER = "argument is not an identifier"


def expand_macro(call: Call) -> Node:
    """Return the expansion of `call`, or `call` itself if it is not a macro.

    Raises:
        CelMacroError: it is a macro, but its arguments are not of the required form.
    """
    macro = _MACROS.get((call.function, len(call.args), call.target is not None))
    return call if macro is None else macro(call)


def _has(call: Call) -> Node:
    (operand,) = call.args
    if not isinstance(operand, Select) or operand.optional:
        raise CelMacroError(operand.position, "invalid argument to has() macro")
    return Select(call.position, operand.operand, operand.field_name, test_only=True)


def _all(call: Call) -> Node:
    at = call.position
    condition = Call(at, NOT_STRICTLY_FALSE, None, [Ident(at, ACCUMULATOR)])
    step = Call(at, AND, None, [Ident(at, ACCUMULATOR), call.args[-1]])
    return _loop(call, Literal(at, True), condition, step)


def _exists(call: Call) -> Node:
    at = call.position
    negated = Call(at, NOT, None, [Ident(at, ACCUMULATOR)])
    condition = Call(at, NOT_STRICTLY_FALSE, None, [negated])
    step = Call(at, OR, None, [Ident(at, ACCUMULATOR), call.args[-1]])
    return _loop(call, Literal(at, False), condition, step)


def _exists_one(call: Call) -> Node:
    at = call.position
    more = Call(at, ADD, None, [Ident(at, ACCUMULATOR), Literal(at, 1)])
    step = Call(at, CONDITIONAL, None, [call.args[-1], more, Ident(at, ACCUMULATOR)])
    result = Call(at, EQUALS, None, [Ident(at, ACCUMULATOR), Literal(at, 1)])
    return _loop(call, Literal(at, 0), Literal(at, True), step, result)


def _map(call: Call) -> Node:
    return _collected(call, call.args[1] if len(call.args) == 3 else None, call.args[-1])


def _filter(call: Call) -> Node:
    return _collected(call, call.args[1], call.args[0])


def _transform_list(call: Call) -> Node:
    return _collected(call, call.args[2] if len(call.args) == 4 else None, call.args[-1])


def _collected(call: Call, condition: Node | None, element: Node) -> Node:
    at = call.position
    step = Call(at, ADD, None, [Ident(at, ACCUMULATOR), ListLiteral(at, [element])])
    return _loop(call, ListLiteral(at, []), Literal(at, True), _if(at, condition, step))


def _transform_map(call: Call) -> Node:
    key, _ = _variables(call)
    at = call.position
    return _inserted(call, [Ident(at, key), call.args[-1]])


def _transform_map_entry(call: Call) -> Node:
    return _inserted(call, [call.args[-1]])


def _inserted(call: Call, what: list[Node]) -> Node:
    at = call.position
    condition = call.args[2] if len(call.args) == 4 else None
    step = Call(at, MAP_INSERT, None, [Ident(at, ACCUMULATOR), *what])
    return _loop(call, MapLiteral(at, []), Literal(at, True), _if(at, condition, step))


def _if(at: int, condition: Node | None, step: Node) -> Node:
    if condition is None:
        return step
    return Call(at, CONDITIONAL, None, [condition, step, Ident(at, ACCUMULATOR)])


def _loop(
    call: Call, initial: Node, condition: Node, step: Node, result: Node | None = None
) -> Node:
    at = call.position
    return Comprehension(
        at,
        _target(call),
        _variables(call),
        ACCUMULATOR,
        initial,
        condition,
        step,
        result or Ident(at, ACCUMULATOR),
    )


def _target(call: Call) -> Node:
    if call.target is None:
        raise CelMacroError(call.position, f"{call.function} needs a target")
    return call.target


def _variables(call: Call) -> tuple[str, ...]:
    """The loop variables: the leading arguments, one or two by the name and count."""
    two = (call.function, len(call.args)) in _TWO_VARIABLES
    variables = call.args[: 2 if two else 1]
    message = _NO_IDENTIFIER if call.function in ("map", "filter") else _NO_SIMPLE_NAME
    names = tuple(_simple_name(arg, message) for arg in variables)
    if two and names[0] == names[1]:
        raise CelMacroError(variables[1].position, f"duplicate variable name: {names[0]}")
    for name, variable in zip(names, variables, strict=True):
        if name in _ACCUMULATOR_NAMES:
            message = "iteration variable overwrites accumulator variable"
            raise CelMacroError(variable.position, message)
    return names


def _simple_name(node: Node, message: str) -> str:
    if not isinstance(node, Ident) or node.name.startswith("."):
        raise CelMacroError(node.position, message)
    return node.name


def _bind(call: Call) -> Node:
    if not isinstance(call.target, Ident) or call.target.name != "cel":
        return call
    variable, value, result = call.args
    name = _simple_name(variable, "cel.bind() variable names must be simple identifiers")
    return _bound(call.position, name, value, result)


def _bound(at: int, variable: str, value: Node, result: Node) -> Node:
    """Evaluate `result` with `variable` bound to `value`: a loop over nothing."""
    return Comprehension(
        at,
        ListLiteral(at, []),
        (UNUSED_VARIABLE,),
        variable,
        value,
        Literal(at, False),
        Ident(at, variable),
        result,
    )


def _opt_map(call: Call) -> Node:
    mapped = _optional_value(call)
    return _if_present(call, Call(call.position, "optional.of", None, [mapped]))


def _opt_flat_map(call: Call) -> Node:
    return _if_present(call, _optional_value(call))


def _optional_value(call: Call) -> Node:
    at = call.position
    value = Call(at, "value", call.target, [])
    message = f"{call.function}() variable name must be a simple identifier"
    return _bound(at, _simple_name(call.args[0], message), value, call.args[1])


def _if_present(call: Call, mapped: Node) -> Node:
    at = call.position
    none = Call(at, "optional.none", None, [])
    present = Call(at, "hasValue", call.target, [])
    return Call(at, CONDITIONAL, None, [present, mapped, none])


def _sort_by(call: Call) -> Node:
    at = call.position
    if isinstance(call.target, Literal | MapLiteral) or call.target is None:
        raise CelMacroError(
            at if call.target is None else call.target.position,
            "sortBy can only be applied to a list, identifier, comprehension, call or select "
            "expression",
        )
    keys = _map(Call(at, "map", Ident(at, _SORT_INPUT), call.args))
    sorted_list = Call(at, "@sortByAssociatedKeys", Ident(at, _SORT_INPUT), [keys])
    return _bound(at, _SORT_INPUT, call.target, sorted_list)


_TWO_VARIABLES = {
    ("all", 3),
    ("exists", 3),
    ("existsOne", 3),
    ("exists_one", 3),
    ("transformList", 3),
    ("transformList", 4),
    ("transformMap", 3),
    ("transformMap", 4),
    ("transformMapEntry", 3),
    ("transformMapEntry", 4),
}
_MEMBERS: dict[Callable[[Call], Node], list[tuple[str, int]]] = {
    _all: [("all", 2), ("all", 3)],
    _exists: [("exists", 2), ("exists", 3)],
    _exists_one: [("exists_one", 2), ("existsOne", 2), ("exists_one", 3), ("existsOne", 3)],
    _map: [("map", 2), ("map", 3)],
    _filter: [("filter", 2)],
    _transform_list: [("transformList", 3), ("transformList", 4)],
    _transform_map: [("transformMap", 3), ("transformMap", 4)],
    _transform_map_entry: [("transformMapEntry", 3), ("transformMapEntry", 4)],
    _bind: [("bind", 3)],
    _opt_map: [("optMap", 2)],
    _opt_flat_map: [("optFlatMap", 2)],
    _sort_by: [("sortBy", 2)],
}
_MACROS: dict[tuple[str, int, bool], Callable[[Call], Node]] = {
    ("has", 1, False): _has,
    **{(name, count, True): macro for macro, names in _MEMBERS.items() for name, count in names},
}
