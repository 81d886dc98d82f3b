"""Functions answer as the documents of Kubernetes and cel-go say."""

from __future__ import annotations

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
