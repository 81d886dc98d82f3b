"""The planner: makes closures of the nodes of a typed tree, and folds constants as cel-go does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stowage.cel.checking.checker import qualified_name
from stowage.cel.errors import CelCompileError, CelRuntimeError
from stowage.cel.evaluation.calls import (
    run_any,
    run_call,
    run_equal,
    run_equal_text,
    run_member_of,
    run_not_strictly_false,
    run_or,
)
from stowage.cel.evaluation.frame import COST_LIMIT, Frame, Run, cost_limit_exceeded
from stowage.cel.evaluation.loops import Loop, run_append, run_binding, run_loop, run_quantifier
from stowage.cel.evaluation.paths import (
    Key,
    Path,
    conditional_path,
    run_path,
    run_presence,
    variable_path,
)
from stowage.cel.functions.conversions import CONVERSIONS
from stowage.cel.functions.costs import LIST_BASE, MAP_BASE
from stowage.cel.functions.regexes import ConstantPatterns, precompiled
from stowage.cel.syntax import tree
from stowage.cel.syntax.tree import (
    Call,
    Comprehension,
    Entry,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
)
from stowage.cel.values.containers import CelMap, TypeValue
from stowage.cel.values.numbers import Uint

_REGEX_FUNCTIONS = frozenset(["matches", "find", "findAll"])
_SCALARS = (str, int, float, bool)
_MEMBER_TYPES = {str, bytes, int, Uint, float, bool}


@dataclass(frozen=True, slots=True)
class Plan:
    """How a node is evaluated: a closure, and what is known about it.

    Attributes:
        run: evaluates the node.
        path: the path, if the node is one.
        constant: the value in a tuple, if the node is constant.
    """

    run: Run
    path: Path | None = None
    constant: tuple[Any] | None = None

    def as_path(self) -> Path:
        """The path of the node; another node is the root of its own."""
        return self.path or Path(self.run)

    def as_key(self, optional: bool) -> Key:
        """The node as a selection."""
        if self.constant is not None:
            return Key(self.constant[0], optional=optional)
        return Key(run=run_path(self.as_path()), optional=optional)


@dataclass(frozen=True, slots=True)
class Program:
    """A planned expression: its closure, and how many slots a frame needs."""

    run: Run
    slots: int


def plan_program(root: Node, variables: Sequence[str] = ("device",)) -> Program:
    """Plan a typed tree; the values of `variables` are in the first slots of a frame.

    Raises:
        CelCompileError: a constant cannot be converted, or a constant pattern is not valid, or
            they are too large.
    """
    planner = _Planner(variables)
    try:
        run = planner.plan(root).run
    except CelRuntimeError as error:
        raise CelCompileError(f"program instantiation failed: {error}") from None
    return Program(run, planner.slots)


def run_program(program: Program, values: Sequence[Any]) -> tuple[Any, int]:
    """Evaluate a program with the values of its variables; returns the result and its cost.

    Raises:
        CelRuntimeError: the evaluation failed, or cost more than the limit.
    """
    frame = Frame([*values, *[None] * (program.slots - len(values))])
    try:
        result = program.run(frame)
    except RecursionError:
        raise cost_limit_exceeded() from None
    if frame.cost > COST_LIMIT:
        raise cost_limit_exceeded()
    return result, frame.cost


def _constant(value: Any) -> Plan:
    return Plan(lambda _frame: value, constant=(value,))


def _of_path(path: Path) -> Plan:
    return Plan(run_path(path), path)


class _Planner:
    def __init__(self, variables: Sequence[str]) -> None:
        self.slots = len(variables)
        self._patterns = ConstantPatterns()
        self._scopes: list[dict[str, tuple[int, bool]]] = [
            {name: (slot, False) for slot, name in enumerate(variables)}
        ]
        self._planned: dict[int, Plan] = {}
        self._plans: dict[type, Callable[..., Plan]] = {
            Literal: lambda node: _constant(node.value),
            Ident: lambda node: self._name(node.name),
            Select: self._select,
            Call: self._call,
            ListLiteral: self._list,
            MapLiteral: self._map,
            Comprehension: self._comprehension,
        }
        self._special: dict[str, Callable[[Call], Plan]] = {
            tree.AND: lambda node: Plan(run_any(self._runs(node.args), decisive=False)),
            tree.OR: lambda node: Plan(run_any(self._runs(node.args), decisive=True)),
            tree.CONDITIONAL: self._conditional,
            tree.EQUALS: lambda node: self._equality(node, negated=False),
            tree.NOT_EQUALS: lambda node: self._equality(node, negated=True),
            tree.INDEX: self._index,
            tree.OPTIONAL_INDEX: self._index,
            tree.NOT_STRICTLY_FALSE: lambda node: Plan(
                run_not_strictly_false(self.plan(node.args[0]).run)
            ),
            "or": lambda node: self._or(node, unwrap=False),
            "orValue": lambda node: self._or(node, unwrap=True),
        }

    def plan(self, node: Node) -> Plan:
        if id(node) not in self._planned:
            self._planned[id(node)] = self._plans[type(node)](node)
        return self._planned[id(node)]

    def _runs(self, nodes: list[Node]) -> list[Run]:
        return [self.plan(node).run for node in nodes]

    def _name(self, name: str) -> Plan:
        name = name.removeprefix(".")
        for scope in reversed(self._scopes):
            if name in scope:
                return _of_path(variable_path(*scope[name]))
        return _constant(TypeValue(name))

    def _select(self, node: Select) -> Plan:
        if node.operand.type is None:  # the checker took the whole for a name
            return self._name(qualified_name(node) or "")
        path = self.plan(node.operand).as_path()
        if node.test_only:
            return Plan(run_presence(path, node.field_name))
        return _of_path(path.selecting(Key(node.field_name, optional=node.optional)))

    def _index(self, node: Call) -> Plan:
        operand, index = node.args
        optional = node.function != tree.INDEX
        key = self.plan(index).as_key(optional)
        if key.run is None and not isinstance(key.value, _SCALARS):
            raise CelCompileError("program instantiation failed: invalid qualifier type")
        return _of_path(self.plan(operand).as_path().selecting(key))

    def _conditional(self, node: Call) -> Plan:
        condition, chosen, other = map(self.plan, node.args)
        return _of_path(conditional_path(condition.run, chosen.as_path(), other.as_path()))

    def _equality(self, node: Call, negated: bool) -> Plan:
        left, right = map(self.plan, node.args)
        if right.constant is not None and isinstance(right.constant[0], str):
            return Plan(run_equal_text(left.run, right.constant[0], negated))
        return Plan(run_equal(left.run, right.run, negated))

    def _or(self, node: Call, unwrap: bool) -> Plan:
        value, alternative = self._runs(_operands(node))
        return Plan(run_or(value, alternative, unwrap))

    def _call(self, node: Call) -> Plan:
        if node.function in self._special:
            return self._special[node.function](node)
        added = _appended(node)
        if added is not None:
            return self._append(node.args[0], added)
        nodes = _operands(node)
        args = [self.plan(each) for each in nodes]
        elements = _constant_elements(node, args)
        if elements is not None:
            return Plan(run_member_of(args[0].run, elements)) if elements else _constant(False)
        pattern = _constant_pattern(node, args)
        overloads = node.overloads
        if pattern is not None:
            regex = self._patterns.compiled(pattern)
            overloads = [precompiled(each, regex) for each in overloads]
        runs, types = [arg.run for arg in args], [each.type for each in nodes]
        plan = Plan(run_call(node.function, overloads, runs, types, in_order=pattern is not None))
        if node.function in CONVERSIONS and len(args) == 1 and args[0].constant is not None:
            return _constant(plan.run(Frame([])))
        return plan

    def _append(self, accumulator: Node, added: Node) -> Plan:
        element = self.plan(added)
        cost = 1 if element.constant is not None else 1 + LIST_BASE
        return Plan(run_append(self.plan(accumulator).run, element.run, cost))

    def _list(self, node: ListLiteral) -> Plan:
        plans = [self.plan(each) for each in node.elements]
        constants = [plan.constant for plan in plans if plan.constant is not None]
        if len(constants) == len(plans) and not node.optional:
            return _constant([value for (value,) in constants])
        elements = [(plan.run, index in node.optional) for index, plan in enumerate(plans)]

        def run(frame: Frame) -> list[Any]:
            frame.cost += LIST_BASE
            values = [(element(frame), optional) for element, optional in elements]
            return [
                _content(value, optional) for value, optional in values if _kept(value, optional)
            ]

        return Plan(run)

    def _map(self, node: MapLiteral) -> Plan:
        keys = [self.plan(entry.key) for entry in node.entries]
        values = [self.plan(entry.value) for entry in node.entries]
        constants = [plan.constant for plan in (*keys, *values)]
        run = _run_map(node.entries, keys, values)
        if None not in constants and not any(entry.optional for entry in node.entries):
            return _constant(run(Frame([])))
        return Plan(run)

    def _comprehension(self, node: Comprehension) -> Plan:
        initial = self._initial(node)
        accumulator = self._slot()
        if node.variables == (tree.UNUSED_VARIABLE,):
            self._scopes.append({node.accumulator: (accumulator, True)})
            result = self.plan(node.result).run
            self._scopes.pop()
            return Plan(run_binding(initial, result, accumulator))
        ranged = self.plan(node.iter_range).run
        variables = tuple(self._slot() for _ in node.variables)
        self._scopes.append({node.accumulator: (accumulator, True)})
        self._scopes.append(
            {name: (slot, False) for name, slot in zip(node.variables, variables, strict=True)}
        )
        condition = self.plan(node.condition)
        step = self.plan(node.step).run
        self._scopes.pop()
        result = self.plan(node.result).run
        self._scopes.pop()
        checked = None if condition.constant == (True,) else condition.run
        loop = Loop(ranged, initial, checked, step, result, variables, accumulator)
        predicate = _predicate(node)
        if predicate is None:
            return Plan(run_loop(loop))
        decisive = isinstance(node.step, Call) and node.step.function == tree.OR
        return Plan(run_quantifier(loop, self.plan(predicate).run, decisive))

    def _initial(self, node: Comprehension) -> Run:
        """The initial value; lists and maps that the loop fills are made anew each time."""
        if node.accumulator == tree.ACCUMULATOR and isinstance(node.initial, ListLiteral):
            return lambda _frame: []
        if node.accumulator == tree.ACCUMULATOR and isinstance(node.initial, MapLiteral):
            return lambda _frame: CelMap({})
        return self.plan(node.initial).run

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1


def _operands(node: Call) -> list[Node]:
    return [node.target, *node.args] if node.target else node.args


def _appended(node: Call) -> Node | None:
    """The element that the step of a loop adds to the list that the loop collects."""
    match node:
        case Call(
            function=tree.ADD,
            args=[Ident(name=tree.ACCUMULATOR), ListLiteral(elements=[element])],
        ):
            return element
    return None


def _constant_pattern(node: Call, args: list[Plan]) -> str | None:
    """The regular expression, if `node` is a call with a constant one."""
    if node.function not in _REGEX_FUNCTIONS or args[1].constant is None:
        return None
    pattern = args[1].constant[0]
    return pattern if isinstance(pattern, str) else None


def _predicate(node: Comprehension) -> Node | None:
    """What ``all`` or ``exists`` asks of each element."""
    match node:
        case Comprehension(
            condition=Call(function=tree.NOT_STRICTLY_FALSE),
            step=Call(args=[Ident(name=tree.ACCUMULATOR), predicate]),
        ):
            return predicate
    return None


def _constant_elements(node: Call, args: list[Plan]) -> list[Any] | None:
    """The elements, if `node` is ``in`` a constant list of scalars of one type."""
    if node.function != tree.IN or args[1].constant is None or len(node.overloads) != 1:
        return None
    elements = args[1].constant[0]
    if not isinstance(elements, list):
        return None
    kinds = {type(each) for each in elements}
    return elements if len(kinds) <= 1 and kinds <= _MEMBER_TYPES else None


def _run_map(entries: list[Entry], keys: list[Plan], values: list[Plan]) -> Run:
    parts = [
        (key.run, value.run, entry.optional)
        for entry, key, value in zip(entries, keys, values, strict=True)
    ]

    def run(frame: Frame) -> CelMap:
        frame.cost += MAP_BASE
        pairs = [(key(frame), value(frame), optional) for key, value, optional in parts]
        return CelMap.of(
            (key, _content(value, optional))
            for key, value, optional in pairs
            if _kept(value, optional)
        )

    return run


def _kept(value: Any, optional: bool) -> bool:
    return not optional or bool(value.present)


def _content(value: Any, optional: bool) -> Any:
    return value.content if optional else value
