"""Expressions about variables and object types that the caller declares."""

from __future__ import annotations

import pytest

from stowage.cel import CelCompileError, CelRuntimeError, Declarations, compile_expression
from stowage.cel.signatures.types import BOOL, DYN, INT, STRING, list_of, optional_of, struct
from stowage.cel.values.containers import NONE, CelMap, Optional

DECLARED = Declarations(
    {"self": struct("port"), "old": optional_of(INT), "any": DYN},
    {"port": {"name": STRING, "number": INT, "tags": list_of(STRING)}},
)
PORT = CelMap({"name": "http", "number": 80, "tags": ["a", "b"]})


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("self.number == 80 && self.name.startsWith('ht')", True),
        ("self.tags.exists(tag, tag == 'c')", False),
        ("old.hasValue() ? old.value() < self.number : true", True),
        ("any == 'x' || type(any) == int", True),
    ],
)
def test_the_values_are_those_of_the_declared_variables_in_order(text: str, want: bool) -> None:
    expression = compile_expression(text, DECLARED, BOOL)
    assert expression.evaluate([PORT, Optional(79), 5])[0] is want
    assert expression.evaluate([PORT, NONE, 5])[0] is want


def test_the_names_of_an_expression_tell_which_variables_it_reads() -> None:
    expression = compile_expression("self.number > old.orValue(1)", DECLARED, BOOL)
    assert {"self", "old"} <= expression.names
    assert "any" not in expression.names


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("self.nosuch == 1", "undefined field 'nosuch'"),
        ("device.driver == ''", "undeclared reference to 'device'"),
        ("self.number", "must evaluate to a bool"),
        ("self.number == 'a'", "found no matching overload"),
    ],
)
def test_what_does_not_fit_the_declarations_is_refused(text: str, why: str) -> None:
    with pytest.raises(CelCompileError, match=why):
        compile_expression(text, DECLARED, BOOL)


def test_a_field_that_is_missing_fails_the_evaluation() -> None:
    expression = compile_expression("self.number > 1", DECLARED, BOOL)
    with pytest.raises(CelRuntimeError, match="no such key: number"):
        expression.evaluate([CelMap({}), NONE, None])
