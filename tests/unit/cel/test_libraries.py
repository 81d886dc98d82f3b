"""Functions answer as the documents of Kubernetes and cel-go say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stowage.cel import CelCompileError, CelRuntimeError, Device, compile_selector

DEVICE = Device("dra.example.com")


def expressions(name: str) -> list[str]:
    """The expressions of a file, one a line."""
    table = (Path(__file__).parent / "expressions" / f"{name}.txt").read_text(encoding="utf-8")
    lines = (line.strip() for line in table.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("expression", expressions("true"))
def test_documented_expressions_are_true(expression: str) -> None:
    assert compile_selector(expression).matches(DEVICE)


@pytest.mark.parametrize("expression", expressions("failing"))
def test_failing_evaluations_are_runtime_errors(expression: str) -> None:
    selector = compile_selector(expression)
    with pytest.raises(CelRuntimeError):
        selector.matches(DEVICE)


@pytest.mark.parametrize("expression", expressions("refused"))
def test_invalid_expressions_do_not_compile(expression: str) -> None:
    with pytest.raises(CelCompileError):
        compile_selector(expression)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("[a", "missing closing ]: `[a`"),
        ("(a", "missing closing ): `(a`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?<n", "invalid named capture: `(?<n`"),
        ("(?z)", "invalid or unsupported Perl syntax: `(?z`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        (r"a\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_what_is_wrong_with_a_pattern_is_said_in_the_words_of_go(pattern: str, text: str) -> None:
    selector = compile_selector(f"'x'.matches('{pattern}' + device.driver.substring(0, 0))")
    with pytest.raises(CelRuntimeError, match=rf"error parsing regexp: {re.escape(text)}$"):
        selector.matches(DEVICE)
