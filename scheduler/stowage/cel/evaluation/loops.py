"""Closures of comprehensions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stowage.cel.errors import CelLimitError, CelRuntimeError, no_such_overload
from stowage.cel.evaluation.frame import COST_LIMIT, Failure, Frame, Run, cost_limit_exceeded
from stowage.cel.values.containers import CelMap


@dataclass(frozen=True, slots=True)
class Loop:
    """The closures of a comprehension and the slots of its variables.

    Attributes:
        condition: None if it is always true.
        variables: slots of the loop variables, one or two.
    """

    ranged: Run
    initial: Run
    condition: Run | None
    step: Run
    result: Run
    variables: tuple[int, ...]
    accumulator: int


def run_loop(loop: Loop) -> Run:
    """Make the closure of a loop.

    A step that fails makes the accumulator a `Failure`; the loop goes on, since ``all`` and
    ``exists`` may still find an element that decides.
    """
    ranged, condition, step, result = loop.ranged, loop.condition, loop.step, loop.result
    initial, accumulator, two = loop.initial, loop.accumulator, len(loop.variables) == 2
    first, second = loop.variables[0], loop.variables[-1]

    def run(frame: Frame) -> Any:
        value = ranged(frame)
        slots = frame.slots
        slots[accumulator] = _value_or_failure(initial, frame)
        for element in _pairs(value) if two else _elements(value):
            if two:
                slots[first], slots[second] = element
            else:
                slots[first] = element
            if condition is not None and condition(frame) is False:
                break
            slots[accumulator] = _value_or_failure(step, frame)
            if frame.cost > COST_LIMIT:
                raise cost_limit_exceeded()
        return result(frame)

    return run


def run_quantifier(loop: Loop, predicate: Run, decisive: bool) -> Run:
    """Make the closure of ``exists`` (`decisive` is True) or ``all`` (False).

    It does and costs what `run_loop` would: the condition costs 3 or 2, the accumulator 1.
    """
    condition_cost = 3 if decisive else 2
    ranged, two = loop.ranged, len(loop.variables) == 2
    first, second = loop.variables[0], loop.variables[-1]

    def run(frame: Frame) -> bool:
        value = ranged(frame)
        slots = frame.slots
        decided = False
        failed: CelRuntimeError | None = None
        for element in _pairs(value) if two else _elements(value):
            if decided:
                frame.cost += condition_cost
                break
            if two:
                slots[first], slots[second] = element
            else:
                slots[first] = element
            frame.cost += condition_cost + 1
            found = _value_or_failure(predicate, frame)
            decided = found is decisive
            if type(found) is not bool:
                failed = failed or (found.error if type(found) is Failure else no_such_overload())
            if frame.cost > COST_LIMIT:
                raise cost_limit_exceeded()
        frame.cost += 1
        if failed is not None and not decided:
            raise failed
        return decided is decisive

    return run


def run_binding(initial: Run, result: Run, slot: int) -> Run:
    """Make the closure of ``cel.bind``: a loop over nothing."""

    def run(frame: Frame) -> Any:
        frame.slots[slot] = _value_or_failure(initial, frame)
        if frame.cost > COST_LIMIT:  # optMap evaluates its target twice
            raise cost_limit_exceeded()
        return result(frame)

    return run


def run_append(accumulator: Run, element: Run, cost: int) -> Run:
    """Make the closure of a step that adds an element to the list that the loop collects."""

    def run(frame: Frame) -> list[Any]:
        elements: list[Any] = accumulator(frame)
        frame.cost += cost
        elements.append(element(frame))
        return elements

    return run


def _value_or_failure(run: Run, frame: Frame) -> Any:
    try:
        return run(frame)
    except CelLimitError:
        raise
    except CelRuntimeError as error:
        return Failure(error)


def _elements(value: Any) -> Iterable[Any]:
    if isinstance(value, list | CelMap):
        return value
    raise no_such_overload()


def _pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, CelMap):
        return value.items()
    if isinstance(value, list):
        return enumerate(value)
    raise no_such_overload()
