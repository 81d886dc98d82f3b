"""Expressions of users end: their length, nesting, cost, time and memory are bounded."""

from __future__ import annotations

import pytest

from stowage.cel import CelCompileError, CelRuntimeError, Device, compile_selector

DEVICE = Device("dra.example.com")
TEN = "[1,2,3,4,5,6,7,8,9,10]"


def nested_loops(depth: int) -> str:
    loops = "".join(f"{TEN}.all(x{level}, " for level in range(depth))
    return f"{loops}x0 > 0{')' * depth}"


def bindings(first: str, step: str, count: int, result: str) -> str:
    """``cel.bind`` nested `count` times; `step` makes the next value from ``{}``."""
    text = f"cel.bind(v0, {first}, "
    for index in range(1, count):
        text += f"cel.bind(v{index}, {step.format(f'v{index - 1}')}, "
    return text + result.format(f"v{count - 1}") + ")" * count


def test_the_cost_limit_ends_nested_loops() -> None:
    assert compile_selector(nested_loops(4)).matches(DEVICE)
    with pytest.raises(CelRuntimeError, match="actual cost limit exceeded"):
        compile_selector(nested_loops(6)).matches(DEVICE)


def test_the_cost_limit_is_not_absorbed() -> None:
    with pytest.raises(CelRuntimeError, match="actual cost limit exceeded"):
        compile_selector(f"{nested_loops(6)} || true").matches(DEVICE)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(
            bindings('"0123456789"', "{0} + {0} + {0} + {0}", 30, "{0} == ''"), id="text doubles"
        ),
        pytest.param(bindings("[1]", "{0} + {0} + {0} + {0}", 30, "{0} == []"), id="list doubles"),
        pytest.param(
            bindings('"0123456789"', '{0}.replace("", {0})', 20, "{0} == ''"), id="replace"
        ),
        pytest.param(
            bindings('["0123456789"]', "[{0}.join({0}[0]), {0}.join({0}[0])]", 30, "{0} == []"),
            id="join",
        ),
        pytest.param("lists.range(9223372036854775807).size() > 0", id="range"),
        pytest.param(
            bindings("[1]", "[{0}, {0}]", 20, "dyn({0}) == dyn({0}.reverse())"), id="shared lists"
        ),
        pytest.param(
            bindings("[1]", "[{0}, {0}]", 20, '"%s".format([{0}]) == ""'), id="format shared lists"
        ),
        pytest.param(bindings("[1]", "[{0}, {0}]", 20, "{0}.flatten(30).size() > 0"), id="flatten"),
        pytest.param(
            'lists.range(50000).all(i, "a".matches("x{1,1000}" + string(i)) || true)', id="patterns"
        ),
        pytest.param('quantity("1e2147483647").isGreaterThan(quantity("1n"))', id="huge quantity"),
    ],
)
def test_values_do_not_grow_without_end(expression: str) -> None:
    with pytest.raises((CelRuntimeError, CelCompileError)):
        compile_selector(expression).matches(DEVICE)


def test_a_regular_expression_is_matched_in_linear_time() -> None:
    text = "a" * 5000
    assert not compile_selector(f'"{text}".matches("^(a+)+$b")').matches(DEVICE)


@pytest.mark.parametrize(
    "call",
    [
        "'a'.matches('[0-9]+') == false",
        "'a'.find('[0-9]+') == ''",
        f"'{'a' * 300}'.findAll('a') != []",
    ],
)
def test_searches_end_before_cel_go_would_end_them(call: str) -> None:
    """cel-go charges a search by the lengths of its arguments, and not by what it finds."""
    assert compile_selector(f"lists.range(30).all(i, {call})").matches(DEVICE)
    with pytest.raises(CelRuntimeError, match="actual cost limit exceeded"):
        compile_selector(f"lists.range(25000).all(i, {call})").matches(DEVICE)


LARGE = "(a?b?){900}"
"""It has 5,400 instructions, and a search takes 20 µs a character."""


@pytest.mark.parametrize("call", [f".matches('{LARGE}c')", f".find('{LARGE}c')=='c'"])
@pytest.mark.parametrize("text", ["ab" * 4000, "éé" * 1000])
def test_a_search_is_charged_by_text_and_compiled_pattern(call: str, text: str) -> None:
    assert not compile_selector(f"'{text[:32]}'{call}").matches(DEVICE)
    with pytest.raises(CelRuntimeError, match="actual cost limit exceeded"):
        compile_selector(f"'{text}'{call}").matches(DEVICE)


def test_searches_for_all_matches_are_charged_by_what_is_left_of_the_text() -> None:
    one, many = f"'{'a' * 64}'", f"'{'a' * 1024}'"
    call = f".findAll('a({LARGE}c)?').size() > 0"
    assert compile_selector(f"{one[:17]}'{call}").matches(DEVICE)
    with pytest.raises(CelRuntimeError, match="actual cost limit exceeded"):
        compile_selector(f"{many}{call}").matches(DEVICE)


@pytest.mark.parametrize(
    ("pattern", "limit"),
    [(LARGE * 20, 2), ("[\\\\pL]{1000}", 2), ("a" * 50, 91)],
    ids=["large", "too large", "small"],
)
def test_patterns_made_by_the_expression_are_charged_by_their_size(
    pattern: str, limit: int
) -> None:
    def expression(times: int) -> str:
        return f"lists.range({times}).all(i, ''.find('{pattern}' + string(i)) == '' || true)"

    assert compile_selector(expression(limit - 1)).matches(DEVICE)
    with pytest.raises(CelRuntimeError, match="actual cost limit exceeded"):
        compile_selector(expression(2 * limit)).matches(DEVICE)


@pytest.mark.parametrize("function", ["matches('{}')", "find('{}') != ''"])
def test_the_constant_patterns_of_an_expression_are_not_too_large_together(function: str) -> None:
    def expression(times: int) -> str:
        calls = (f"''.{function.format(LARGE + 'c' * (index + 1))}" for index in range(times))
        return " || ".join(calls)

    assert not compile_selector(expression(20)).matches(DEVICE)
    with pytest.raises(CelCompileError, match=r"too large|invalid matches argument"):
        compile_selector(expression(50))


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 300 + "true" + ")" * 300,
        "[" * 300 + "]" * 300 + " == []",
        "!" * 100_000 + "true",
        "true" + " && true" * 20_000,
        "1" + " + 1" * 300 + " == 301",
        "device" + ".a" * 300 + " == 1",
        "true ? " * 300 + "true" + " : true" * 300,
        bindings("{1: 1}", "{{dyn({0}): {0}}}", 100, "{0} == {0}"),
        bindings("{1: []}", "{{1: {0}}}", 200, "{0} == {0}"),
        "optional.of(1)" + ".optMap(x, x)" * 60 + ".hasValue()",
        bindings("[]", "[{0}, {0}]", 100, "{0} == {0}"),
    ],
    ids=lambda expression: expression[:20],
)
def test_the_compiler_comes_to_an_end(expression: str) -> None:
    with pytest.raises((CelCompileError, CelRuntimeError)):
        compile_selector(expression).matches(DEVICE)


def test_chains_of_and_have_no_depth() -> None:
    assert compile_selector("true" + " && true" * 2_000).matches(DEVICE)


def test_a_text_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(CelCompileError, match="not valid Unicode"):
        compile_selector('"\ud800" == ""')


def test_a_number_of_many_digits_is_refused() -> None:
    with pytest.raises(CelCompileError, match="invalid int literal"):
        compile_selector(f"{'9' * 5000} > 0")
