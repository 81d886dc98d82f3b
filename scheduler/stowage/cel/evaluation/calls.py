"""Closures of calls: arguments, checks of their types, cost and implementation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

from stowage.cel.errors import CelLimitError, CelRuntimeError, no_such_overload
from stowage.cel.evaluation.frame import Frame, Run
from stowage.cel.evaluation.guards import accepts
from stowage.cel.functions.costs import (
    FUNCTION_COSTS,
    TRAVERSAL,
    new_list,
    smaller_traversal,
    twice_result,
)
from stowage.cel.signatures.functions import CostFunction, Implementation, Overload
from stowage.cel.signatures.types import Type
from stowage.cel.values.containers import Optional
from stowage.cel.values.equality import equal

Invoke = Callable[[Frame, tuple[Any, ...]], Any]

_FAILED = object()
"""Stands for an argument that failed, where only its size counts: 1."""
_COSTS_OF_RESULT = frozenset([new_list, twice_result])


def run_call(
    function: str,
    overloads: Sequence[Overload],
    args: list[Run],
    types: list[Type],
    in_order: bool = False,
) -> Run:
    """Make the closure of a call whose candidates are `overloads`.

    A call of one or two arguments evaluates both and is charged even if one fails. A call of more,
    or `in_order`, ends with the first argument that fails.
    """
    single = overloads[0] if len(overloads) == 1 else None
    cost = (single.cost if single else None) or FUNCTION_COSTS.get(function) or _constant_cost
    direct = _direct(single, types) if cost is _constant_cost else None
    if direct is not None and len(args) == 2:
        return _run_direct(args[0], args[1], direct)
    charged = _charging(_dispatch(overloads, types), cost)
    if len(args) == 1:
        return _run_unary(args[0], charged, cost)
    if len(args) == 2 and not in_order:
        return _run_binary(args[0], args[1], charged, cost)
    return lambda frame: charged(frame, tuple([arg(frame) for arg in args]))


def run_equal(left: Run, right: Run, negated: bool) -> Run:
    """Make the closure of ``==`` or ``!=``; ``!=`` is true of values that cannot be compared."""

    def compare(frame: Frame, values: tuple[Any, ...]) -> bool:
        return _compare(frame, values, negated)

    return _run_binary(left, right, compare, smaller_traversal)


def _compare(frame: Frame, values: tuple[Any, ...], negated: bool) -> bool:
    frame.cost += smaller_traversal(values, None)
    if not negated:
        return equal(values[0], values[1], frame)
    try:
        return not equal(values[0], values[1], frame)
    except CelLimitError:
        raise
    except CelRuntimeError:
        return True


def run_equal_text(left: Run, right: str, negated: bool) -> Run:
    """`run_equal` with a constant string on the right."""
    length = len(right)
    failed_cost = smaller_traversal((_FAILED, right), None)

    def run(frame: Frame) -> bool:
        try:
            value = left(frame)
        except CelRuntimeError:
            frame.cost += failed_cost
            raise
        if type(value) is str:
            frame.cost += ceil(min(len(value), length) * TRAVERSAL)
            return bool(value == right) is not negated
        return _compare(frame, (value, right), negated)

    return run


def run_any(terms: Sequence[Run], decisive: bool) -> Run:
    """Make the closure of ``||`` (`decisive` is True) or ``&&`` (False).

    A term with the decisive value decides, whatever terms before it failed.
    """

    def run(frame: Frame) -> bool:
        failed: CelRuntimeError | None = None
        for term in terms:
            try:
                value = term(frame)
            except CelLimitError:
                raise
            except CelRuntimeError as error:
                failed = failed or error
                continue
            if value is decisive:
                return bool(value)
            if type(value) is not bool:
                failed = failed or no_such_overload()
        if failed is not None:
            raise failed
        return not decisive

    return run


def run_not_strictly_false(arg: Run) -> Run:
    """Make the closure of the condition of a loop: False only if `arg` is False."""

    def run(frame: Frame) -> bool:
        try:
            value = arg(frame)
        except CelLimitError:
            raise
        except CelRuntimeError:
            value = True
        frame.cost += 1
        return value is not False

    return run


def run_or(left: Run, right: Run, unwrap: bool) -> Run:
    """Make the closure of ``or`` or ``orValue`` (`unwrap`) of an optional value."""

    def run(frame: Frame) -> Any:
        value = left(frame)
        if type(value) is not Optional:
            return value
        if not value.present:
            return right(frame)
        return value.content if unwrap else value

    return run


def run_member_of(arg: Run, elements: list[Any]) -> Run:
    """Make the closure of ``in`` a constant list of scalars of one type; it costs nothing."""
    first = elements[0]
    members = frozenset(elements)
    classes = (type(first),)
    if type(first) is not bool and isinstance(first, int | float):
        return lambda frame: _is_number(value := arg(frame)) and value in members

    return lambda frame: type(value := arg(frame)) in classes and value in members


def _is_number(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, int | float)


def _direct(single: Overload | None, types: list[Type]) -> Implementation | None:
    """The implementation, if it can be called without any check."""
    if single is None or single.needs_frame or accepts(single, types) is not None:
        return None
    return single.implementation


def _dispatch(overloads: Sequence[Overload], types: list[Type]) -> Invoke:
    """The implementation of the first overload that accepts the arguments."""
    candidates = [(accepts(each, types), _implementation(each)) for each in overloads]
    if len(candidates) == 1 and candidates[0][0] is None:
        return candidates[0][1]

    def invoke(frame: Frame, values: tuple[Any, ...]) -> Any:
        for check, implementation in candidates:
            if check is None or check(values):
                return implementation(frame, values)
        raise no_such_overload()

    return invoke


def _implementation(overload: Overload) -> Invoke:
    implementation = overload.implementation
    if implementation is None:

        def refuse(_frame: Frame, _values: tuple[Any, ...]) -> Any:
            raise no_such_overload()

        return refuse
    if overload.needs_frame:
        return lambda frame, values: implementation(frame, *values)
    return lambda _frame, values: implementation(*values)


def _constant_cost(_args: tuple[Any, ...], _result: Any) -> int:
    return 1


def _charging(invoke: Invoke, cost: CostFunction) -> Invoke:
    """Charge the cost before the call, or after it if it depends on the result."""
    if cost is _constant_cost:

        def constant(frame: Frame, values: tuple[Any, ...]) -> Any:
            frame.cost += 1
            return invoke(frame, values)

        return constant
    if cost in _COSTS_OF_RESULT:

        def after(frame: Frame, values: tuple[Any, ...]) -> Any:
            try:
                result = invoke(frame, values)
            except CelRuntimeError:
                frame.cost += cost(values, None)
                raise
            frame.charge(cost(values, result))
            return result

        return after

    def before(frame: Frame, values: tuple[Any, ...]) -> Any:
        frame.charge(cost(values, None))
        return invoke(frame, values)

    return before


def _run_unary(arg: Run, charged: Invoke, cost: CostFunction) -> Run:
    def run(frame: Frame) -> Any:
        try:
            value = arg(frame)
        except CelRuntimeError:
            frame.cost += cost((_FAILED,), None)
            raise
        return charged(frame, (value,))

    return run


def _run_binary(left: Run, right: Run, charged: Invoke, cost: CostFunction) -> Run:
    def run(frame: Frame) -> Any:
        try:
            first = left(frame)
        except CelLimitError:
            raise
        except CelRuntimeError:
            second = _value_or_failed(right, frame)
            frame.cost += cost((_FAILED, second), None)
            raise
        try:
            second = right(frame)
        except CelRuntimeError:
            frame.cost += cost((first, _FAILED), None)
            raise
        return charged(frame, (first, second))

    return run


def _run_direct(left: Run, right: Run, implementation: Implementation) -> Run:
    """`_run_binary` for a call that costs 1, without calls in between."""
    failing = _run_binary(left, right, lambda _frame, values: values, _constant_cost)

    def run(frame: Frame) -> Any:
        cost = frame.cost
        try:
            first, second = left(frame), right(frame)
        except CelLimitError:
            raise
        except CelRuntimeError:
            frame.cost = cost
            failing(frame)
            raise
        frame.cost += 1
        return implementation(first, second)

    return run


def _value_or_failed(run: Run, frame: Frame) -> Any:
    try:
        return run(frame)
    except CelLimitError:
        raise
    except CelRuntimeError:
        return _FAILED
