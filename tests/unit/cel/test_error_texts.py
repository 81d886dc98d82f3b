"""Errors of the compiler read as cel-go prints them: all of a kind, in the order of the text."""

from __future__ import annotations

import pytest

from stowage.cel import CelCompileError, compile_selector

TERM = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', "
    "NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


def issues_of(expression: str) -> list[tuple[int, str]]:
    """Column and message of each issue of an expression of one line."""
    with pytest.raises(CelCompileError) as error:
        compile_selector(expression)
    first, *others = str(error.value).removeprefix("compilation failed: ERROR: ").split("\nERROR: ")
    issues = []
    for each in [first, *others]:
        head, shown, caret = each.split("\n")
        name, line, column, message = head.split(":", 3)
        assert (name, line, shown) == ("<input>", "1", f" | {expression}")
        assert caret == f" | {'.' * (int(column) - 1)}^"
        issues.append((int(column), message.strip()))
    return issues


@pytest.mark.parametrize(
    ("expression", "issues"),
    [
        ("1 +", [(4, f"Syntax error: mismatched input '<EOF>' expecting {TERM}")]),
        ("?!", [(1, f"Syntax error: extraneous input '?' expecting {TERM}")]),
        ("1 == 1)", [(7, "Syntax error: extraneous input ')' expecting <EOF>")]),
        ("(1 1) == 1", [(4, "Syntax error: extraneous input '1' expecting ')'")]),
        ("(1 == 1", [(8, "Syntax error: missing ')' at '<EOF>'")]),
        ("((1 == 1", [(9, "Syntax error: mismatched input '<EOF>' expecting ')'")]),
        ("[1, 2", [(6, "Syntax error: mismatched input '<EOF>' expecting {']', ','}")]),
        (
            "(1 = 2)",
            [
                (4, "Syntax error: token recognition error at: '= '"),
                (6, "Syntax error: extraneous input '2' expecting ')'"),
            ],
        ),
        (
            "\"it's",
            [
                (1, "Syntax error: token recognition error at: '\"it's'"),
                (6, f"Syntax error: mismatched input '<EOF>' expecting {TERM}"),
            ],
        ),
    ],
)
def test_a_syntax_error_has_its_position_and_text(
    expression: str, issues: list[tuple[int, str]]
) -> None:
    assert issues_of(expression) == issues


@pytest.mark.parametrize(
    ("expression", "issues"),
    [
        ("[1].all(x.y, true)", [(10, "argument must be a simple name")]),
        ("[1].map(1, true)", [(9, "argument is not an identifier")]),
        ("[1].all(i, i, true)", [(12, "duplicate variable name: i")]),
        (
            "[1].exists(__result__, true)",
            [(12, "iteration variable overwrites accumulator variable")],
        ),
        ("has(1)", [(5, "invalid argument to has() macro")]),
        ("cel.bind(a.b, 1, a.b)", [(11, "cel.bind() variable names must be simple identifiers")]),
        (
            "optional.of(1).optMap(1, 2)",
            [(23, "optMap() variable name must be a simple identifier")],
        ),
    ],
)
def test_errors_of_macros_are_at_the_argument(
    expression: str, issues: list[tuple[int, str]]
) -> None:
    assert issues_of(expression) == issues


def test_all_type_errors_are_shown() -> None:
    assert issues_of("math.least(1) == nope && device.bar && 1 + duration('1s')") == [
        (1, "undeclared reference to 'math' (in container '')"),
        (11, "undeclared reference to 'least' (in container '')"),
        (18, "undeclared reference to 'nope' (in container '')"),
        (32, "undefined field 'bar'"),
        (42, "found no matching overload for '_+_' applied to '(int, duration)'"),
    ]


def test_no_more_than_a_hundred_errors_are_shown() -> None:
    with pytest.raises(CelCompileError) as error:
        compile_selector(" && ".join(["a"] * 102))
    assert str(error.value).count("ERROR: ") == 100
    assert str(error.value).endswith("\n2 more errors were truncated")


def test_wide_characters_have_wide_marks() -> None:
    with pytest.raises(CelCompileError) as error:
        compile_selector("'\u4f60' == 1")
    assert str(error.value).endswith("\n | '\u4f60' == 1\n | .\uff0e..^")


@pytest.mark.parametrize(
    ("expression", "issues"),
    [
        ('[1, "a", true] == []', [(5, "expected type 'int' but found 'string'")]),
        ('{1: 1, 2: "a"} == {}', [(11, "expected type 'int' but found 'string'")]),
        (
            '[duration("x"), duration("y")] == []',
            [(11, "invalid duration argument"), (26, "invalid duration argument")],
        ),
        (
            '"%d".format(["a"]) == ""',
            [
                (
                    14,
                    (
                        "error during formatting: decimal clause can only be used on integers, "
                        "was given string"
                    ),
                )
            ],
        ),
        ('"%s %s".format(["a"]) == ""', [(15, "index 1 out of range")]),
        (
            '"%s".format(["a", "b"]) == ""',
            [(12, "too many arguments supplied to string.format (expected 1, got 2)")],
        ),
        (
            '"%y".format([1]) == ""',
            [(12, 'could not parse formatting clause: unrecognized formatting clause "y"')],
        ),
        ('"%".format([1]) == ""', [(11, "unexpected end of string")]),
        (
            '"%.2".format([1.0]) == ""',
            [
                (
                    13,
                    (
                        "could not parse formatting clause: error while parsing precision: "
                        "could not find end of precision specifier"
                    ),
                )
            ],
        ),
    ],
)
def test_invalid_constants_are_shown_where_they_are(
    expression: str, issues: list[tuple[int, str]]
) -> None:
    assert issues_of(expression) == issues


def test_the_type_of_a_result_has_its_full_name() -> None:
    with pytest.raises(CelCompileError) as error:
        compile_selector("device.attributes")
    assert str(error.value) == (
        "must evaluate to bool or the unknown type, "
        "not map(string, map(string, google.protobuf.Any))"
    )


def test_a_very_long_line_is_not_shown() -> None:
    with pytest.raises(CelCompileError) as error:
        compile_selector("a" + " " * 16_384)
    assert str(error.value) == (
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'a' (in container '')"
    )
