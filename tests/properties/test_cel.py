"""CEL selectors: no input fails in another way than declared, and values are as their twins."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api import parse_quantity
from stowage.cel import (
    COST_LIMIT,
    CelCompileError,
    CelRuntimeError,
    Device,
    Version,
    compile_selector,
)
from stowage.cel.estimation import worst_selector_cost
from tests.support.generators.cel_expressions import SELECTORS

DEVICE = Device("d", {"model": "a100", "index": 3, "version": Version("1.2.3")}, {"memory": "80Gi"})
INT64 = st.integers(-(2**63), 2**63 - 1)
OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: int(Fraction(a, b)),
    "%": lambda a, b: a - b * int(Fraction(a, b)),
}
SIMPLE_TEXT = st.text("ab01 -", max_size=12)


def evaluated(expression: str) -> bool:
    return compile_selector(expression).matches(DEVICE)


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + escaped.replace("\r", "\\r") + '"'


@given(SELECTORS)
@settings(max_examples=1500, deadline=None)
def test_every_text_is_refused_or_gives_a_selector_that_answers_or_fails(expression: str) -> None:
    try:
        selector = compile_selector(expression)
    except CelCompileError:
        return
    try:
        answer, cost = selector.evaluate(DEVICE)
    except CelRuntimeError:
        return
    assert isinstance(answer, bool)
    assert 0 <= cost <= COST_LIMIT
    assert selector.evaluate(DEVICE) == (answer, cost)


@given(SELECTORS)
@settings(max_examples=1500, deadline=None)
def test_no_evaluation_costs_more_than_the_worst_cost(expression: str) -> None:
    try:
        worst = worst_selector_cost(expression)
        _, cost = compile_selector(expression).evaluate(DEVICE)
    except (CelCompileError, CelRuntimeError):
        return
    assert cost <= worst


@given(INT64, st.sampled_from(sorted(OPERATORS)), INT64)
def test_int_arithmetic_is_exact_or_fails(left: int, operator: str, right: int) -> None:
    expression = f"{left} {operator} ({right})"
    if operator in "/%" and right == 0:
        with pytest.raises(CelRuntimeError, match="by zero"):
            evaluated(f"{expression} == 0")
        return
    want = OPERATORS[operator](left, right)
    if not -(2**63) <= want < 2**63 or (left, right) == (-(2**63), -1):
        with pytest.raises(CelRuntimeError, match="integer overflow"):
            evaluated(f"{expression} == 0")
    else:
        assert evaluated(f"{expression} == {want}")


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_text_has_code_points(left: str, right: str) -> None:
    a, b = quoted(left), quoted(right)
    assert evaluated(f"size({a} + {b}) == {len(left) + len(right)}")
    assert evaluated(f"({a} < {b}) == {str(left < right).lower()}")
    assert evaluated(f"{a}.contains({b}) == {str(right in left).lower()}")


@given(st.lists(st.integers(-50, 50), max_size=8), st.integers(-50, 50))
def test_macros_are_as_in_python(elements: list[int], bound: int) -> None:
    assert evaluated(f"{elements}.all(x, x < {bound}) == {_text(all(x < bound for x in elements))}")
    assert evaluated(
        f"{elements}.exists(x, x < {bound}) == {_text(any(x < bound for x in elements))}"
    )
    assert evaluated(f"{elements}.filter(x, x < {bound}) == {[x for x in elements if x < bound]}")
    assert evaluated(f"{elements}.map(x, x + {bound}) == {[x + bound for x in elements]}")
    assert evaluated(f"{elements}.sort() == {sorted(elements)}")
    one = sum(x < bound for x in elements) == 1
    assert evaluated(f"{elements}.exists_one(x, x < {bound}) == {_text(one)}")


@given(SIMPLE_TEXT, st.sampled_from(["a+", "b|a", "[01]*", "a?b", "-", " *", "(a|b)+0"]))
def test_find_all_is_as_in_python_but_for_empty_matches_after_others(text: str, regex: str) -> None:
    want: list[str] = []
    end = -1
    for match in re.finditer(regex, text):
        if match[0] or match.start() != end:
            want.append(match[0])
        end = match.end() if match[0] else end
    shown = ", ".join(quoted(each) for each in want)
    assert evaluated(f"{quoted(text)}.findAll({quoted(regex)}) == [{shown}]")


AMOUNTS = st.builds(
    lambda sign, whole, fraction, suffix: f"{sign}{whole}{fraction}{suffix}",
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**19).map(str),
    st.sampled_from(["", ".", ".5", ".125", ".0000000001"]),
    st.sampled_from(["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "Pi", "Ei", "e3", "E-2"]),
)


@given(AMOUNTS, AMOUNTS)
def test_quantities_are_those_of_the_api(left: str, right: str) -> None:
    a, b = parse_quantity(left), parse_quantity(right)
    one, other = (Fraction(each.mantissa) * Fraction(10) ** each.exponent for each in (a, b))
    order = (one > other) - (one < other)
    quantity, second = f'quantity("{left}")', f'quantity("{right}")'
    assert evaluated(f"{quantity}.compareTo({second}) == {order}")
    assert evaluated(f"sign({quantity}) == {a.sign}")
    capped = left.endswith("i") and abs(one) == 2**63 - 1  # kept as a big decimal
    integer = not a.wide and a.exponent >= 0 and abs(one) < 2**63 and not capped
    assert evaluated(f"{quantity}.isInteger() == {_text(integer)}")
    assert evaluated(f"{quantity}.add({second}).compareTo({quantity}) == {b.sign}")


@given(st.lists(st.tuples(*[st.integers(0, 20)] * 3), min_size=2, max_size=2))
def test_versions_are_ordered_by_their_numbers(versions: list[tuple[int, int, int]]) -> None:
    left, right = (".".join(map(str, each)) for each in versions)
    order = (versions[0] > versions[1]) - (versions[0] < versions[1])
    assert evaluated(f'semver("{left}").compareTo(semver("{right}")) == {order}')
    assert evaluated(f'semver("{left}-rc").isLessThan(semver("{left}"))')


@given(st.integers(-(2**63), 2**63 - 1))
def test_durations_are_read_as_they_are_written(nanos: int) -> None:
    assert evaluated(f"duration(string(duration({nanos}))) == duration({nanos})")


@given(st.integers(-62135596800, 253402300799))
def test_timestamps_are_read_as_they_are_written(seconds: int) -> None:
    assert evaluated(f"timestamp(string(timestamp({seconds}))) == timestamp({seconds})")
    assert evaluated(f"int(timestamp({seconds})) == {seconds}")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_are_read_as_they_are_written(value: float) -> None:
    assert evaluated(f"double(string({value!r})) == {value!r}")


def _text(value: bool) -> str:
    return "true" if value else "false"
